#!/usr/bin/env node
// ort.mjs - runs an ONNX model under ONNX Runtime on the CPU, one thread, and prints what it took as one JSON object:
// seconds of every run (wall and CPU), their medians and minima, and the largest resident size of the process.
//
//   ort.mjs MODEL.onnx (--input X.npy | --shape 1x3x224x224 [--seed 1]) [--runs 5] [--warm 1] [--output Y.npy]
//           [--batch B] [--mean 0.5[,..]] [--std 0.5[,..]] [--threads 1] [--no-pattern] [--no-arena]
//
// An input of float32 (N, C, H, W) is taken as it is; one of uint8 (N, H, W, C) holds pixels: (x / 255 - mean) / std, unless the
// model itself takes uint8. With --batch the samples are run B at a time, and the outputs put together.
// --no-pattern and --no-arena switch off its planned blocks and its arena: less memory, less speed.
// ONNX Runtime lies where `fetch.py ort` says, or in $ORT_MODULES.
import {execFileSync} from 'node:child_process';
import {createRequire} from 'node:module';
import {readFileSync, openSync, readSync, closeSync, writeSync} from 'node:fs';
import {fileURLToPath} from 'node:url';
import {parseArgs} from 'node:util';

process.on('uncaughtException', (why) => {
  console.error(`ort.mjs: ${why.message}`);
  process.exit(1);
});
const {values: o, positionals: [model]} = parseArgs({
  allowPositionals: true,
  options: {
    'no-pattern': {type: 'boolean', default: false},
    'no-arena': {type: 'boolean', default: false},
    ...Object.fromEntries(Object.entries({
      input: undefined, output: undefined, shape: undefined, seed: '1', runs: '5', warm: '1', batch: undefined, mean: '0.5',
      std: '0.5', threads: '1',
    }).map(([name, value]) => [name, {type: 'string', default: value}])),
  },
});

function usage() {
  console.error('usage: ort.mjs MODEL.onnx (--input X.npy | --shape 1x3x224x224) [--runs N] [--output Y.npy] ...');
  process.exit(2);
}

// Where fetch.py put ONNX Runtime; its refusal (77, with the reason) is ours.
function modules() {
  if (process.env.ORT_MODULES) return process.env.ORT_MODULES;
  try {
    const script = fileURLToPath(new URL('fetch.py', import.meta.url));
    return execFileSync('/usr/bin/python3', [script, 'ort'], {encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit']}).trim();
  } catch (why) {
    process.exit(why.status ?? 1);
  }
}

// --- NumPy files ---

const KINDS = {'<f4': ['float32', Float32Array], '|u1': ['uint8', Uint8Array], '<i8': ['int64', BigInt64Array]};

function readNpy(path) {
  const fd = openSync(path, 'r'), head = Buffer.alloc(12);
  readSync(fd, head, 0, 12, 0);
  const at = head[6] === 1 ? 10 : 12, length = head[6] === 1 ? head.readUInt16LE(8) : head.readUInt32LE(8);
  const text = Buffer.alloc(length);
  readSync(fd, text, 0, length, at);
  const [, kind] = /'descr': '([^']+)'/.exec(text), [, dims] = /'shape': \(([^)]*)\)/.exec(text);
  const [type, Kind] = KINDS[kind], shape = dims.split(',').filter((d) => d.trim()).map(Number);
  const data = new Kind(shape.reduce((a, b) => a * b, 1)), bytes = new Uint8Array(data.buffer);
  for (let done = 0; done < bytes.length;)
    done += readSync(fd, bytes, done, Math.min(bytes.length - done, 1 << 30), at + length + done);
  closeSync(fd);
  return {type, data, shape};
}

function writeNpy(path, {type, data, shape}) {
  const kind = Object.keys(KINDS).find((k) => KINDS[k][0] === type);
  let text = `{'descr': '${kind}', 'fortran_order': False, 'shape': (${shape.join(', ')}${shape.length === 1 ? ',' : ''}), }`;
  text = text.padEnd(Math.ceil((10 + text.length + 1) / 64) * 64 - 11) + '\n';
  const head = Buffer.from(`\x93NUMPY\x01\x00__${text}`, 'latin1'), fd = openSync(path, 'w');
  head.writeUInt16LE(text.length, 8);
  writeSync(fd, head);
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  for (let done = 0; done < bytes.length;) done += writeSync(fd, bytes, done, Math.min(bytes.length - done, 1 << 30));
  closeSync(fd);
}

// --- inputs ---

// Uniform in -1..1, or bytes, from a 32-bit xorshift.
function synthetic(type, shape, seed) {
  const data = new (type === 'uint8' ? Uint8Array : Float32Array)(shape.reduce((a, b) => a * b, 1));
  let s = (seed * 2654435761) >>> 0 || 1;
  for (let i = 0; i < data.length; i++) {
    s ^= s << 13, s ^= s >>> 17, s ^= s << 5, s >>>= 0;
    data[i] = type === 'uint8' ? s >>> 24 : (s / 4294967296) * 2 - 1;
  }
  return {type, data, shape};
}

// (N, H, W, C) pixels to (N, C, H, W), normalised where the model takes floats.
function fromPixels({data, shape: [n, h, w, c]}, type) {
  const plane = h * w, out = new (type === 'uint8' ? Uint8Array : Float32Array)(data.length);
  const per = (list, ch) => Number(list.split(',')[ch] ?? list.split(',')[0]);
  for (let ch = 0; ch < c; ch++) {
    const mean = per(o.mean, ch), std = per(o.std, ch);
    const level = Array.from({length: 256}, (_, v) => (type === 'uint8' ? v : (v / 255 - mean) / std));
    for (let i = 0; i < n; i++)
      for (let p = 0, to = (i * c + ch) * plane; p < plane; p++) out[to + p] = level[data[(i * plane + p) * c + ch]];
  }
  return {type, data: out, shape: [n, c, h, w]};
}

function theInput(type) {
  if (!o.input) return synthetic(type, o.shape.split('x').map(Number), Number(o.seed));
  const x = readNpy(o.input);
  return x.type === 'uint8' ? fromPixels(x, type) : x;
}

// --- runs ---

function slices({type, data, shape}, size) {
  const count = data.length / shape[0];
  return Array.from({length: Math.ceil(shape[0] / size)}, (_, k) => {
    const n = Math.min(size, shape[0] - k * size);
    return {type, data: data.subarray(k * size * count, (k * size + n) * count), shape: [n, ...shape.slice(1)]};
  });
}

function joined(parts) {
  const total = parts.reduce((sum, p) => sum + p.data.length, 0), [{type, data, shape}] = parts;
  const out = new data.constructor(total);
  parts.reduce((at, p) => (out.set(p.data, at), at + p.data.length), 0);
  return {type, data: out, shape: [parts.reduce((sum, p) => sum + p.shape[0], 0), ...shape.slice(1)]};
}

const peakBytes = () => 1024 * Number(/VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1]);

function cpuSeconds() {
  const {user, system} = process.cpuUsage();
  return (user + system) / 1e6;
}

const median = (list) => {
  const s = [...list].sort((a, b) => a - b);
  return (s[(s.length - 1) >> 1] + s[s.length >> 1]) / 2;
};

if (!model || !(o.input || o.shape)) usage();
const ort = createRequire(modules() + '/')('onnxruntime-node');
const bareBytes = peakBytes(); // node and the library, before any model
const threads = Number(o.threads);
const session = await ort.InferenceSession.create(model, {
  executionProviders: ['cpu'], intraOpNumThreads: threads, interOpNumThreads: 1, executionMode: 'sequential',
  graphOptimizationLevel: 'all', logSeverityLevel: 3, enableMemPattern: !o['no-pattern'], enableCpuMemArena: !o['no-arena'],
});
const whole = theInput(session.inputMetadata[0].type);
const feeds = slices(whole, Number(o.batch ?? whole.shape[0])).map((x) => ({
  [session.inputNames[0]]: new ort.Tensor(x.type, x.data, x.shape),
}));
const wall = [], cpu = [];
let results = [];
for (let run = -Number(o.warm); run < Number(o.runs); run++) {
  const t0 = process.hrtime.bigint(), c0 = cpuSeconds();
  results = [];
  for (const feed of feeds) results.push((await session.run(feed))[session.outputNames[0]]);
  if (run < 0) continue;
  wall.push(Number(process.hrtime.bigint() - t0) / 1e9);
  cpu.push(cpuSeconds() - c0);
}
if (o.output) writeNpy(o.output, joined(results.map((r) => ({type: r.type, data: r.data, shape: r.dims}))));
console.log(JSON.stringify({
  program: 'onnxruntime-node 1.30.0', model, threads, input: whole.shape, runs: wall.length,
  wall_s: {median: median(wall), min: Math.min(...wall)}, cpu_s: {median: median(cpu), min: Math.min(...cpu)},
  step_s: wall, step_cpu_s: cpu, peak_rss_bytes: peakBytes(), bare_rss_bytes: bareBytes,
}));
