#!/bin/bash
# onnxruntime-group-norm-of-a-large-mean.sh - in ONNX Runtime two spellings of the same normalisation differ by the whole answer.
#
# Versions:  onnxruntime-node 1.30.0 (npm; CPU, default options), Node.js 20; opset 21, ir 10.
# Expected:  GroupNormalization with as many groups as channels is InstanceNormalization; on a map with mean 1000 and deviation 1 both
#            should be right to about mean/deviation x 1e-7, 1e-4, as LayerNormalization over the map is.
# Behaviour: GroupNormalization alone loses the answer: numbers of size 1 are off by 1.0 on a map of 64 x 64, by 0.006 already where the
#            mean is 100 deviations, as if the variance were the difference of two large sums in float32. On 1024 x 1024 some outputs are NaN.
#            So a network that was exported with InstanceNormalization for its group norms, as PyTorch's exporter writes them, may change its
#            answer when they are spelled GroupNormalization instead.
# Output seen (side, mean, largest error of InstanceNormalization, GroupNormalization, LayerNormalization):
#   64 0 2.1e-7 2.4e-7 2.7e-7
#   64 100 2.2e-5 6.2e-3 3.5e-6
#   64 1000 1.4e-4 1.0e+0 2.6e-5
#   1024 1000 1.3e-4 NaN 7.5e-5
# Exits 1 if that changes, 2 if it could not be tried. Needs node, npm.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
timeout -k 5 300 npm install --silent --no-audit --no-fund --ignore-scripts onnxruntime-node@1.30.0 >/dev/null || exit 2
cat >norm.mjs <<'JS'
import ort from 'onnxruntime-node';

// The few fields of protobuf that a model of one node needs.
const varint = v => (v > 127 ? [v % 128 + 128, ...varint(Math.floor(v / 128))] : [v]);
const number = (field, v) => Buffer.from([...varint(field * 8), ...varint(v)]);
const bytes = (field, v) => Buffer.concat([Buffer.from([...varint(field * 8 + 2), ...varint(Buffer.from(v).length)]), Buffer.from(v)]);
const join = (...parts) => Buffer.concat(parts.flat());
const shaped = (field, name, shape) =>
  bytes(field, join(bytes(1, name), bytes(2, bytes(1, join(number(1, 1), bytes(2, join(shape.map(d => bytes(1, number(1, d))))))))));
const constant = (name, shape, v) =>
  bytes(5, join(shape.map(d => number(1, d)), number(2, 1), bytes(8, name), bytes(9, Buffer.from(new Float32Array(shape.reduce((a, b) => a * b, 1)).fill(v).buffer))));
const integer = (name, v) => bytes(5, join(bytes(1, name), number(3, v), number(20, 2)));
const model = (operator, shape, parameters, attributes) => {
  const node = join(['x', 's', 'b'].map(input => bytes(1, input)), bytes(2, 'y'), bytes(4, operator), attributes);
  const graph = join(bytes(1, node), bytes(2, 'g'), constant('s', parameters, 1), constant('b', parameters, 0), shaped(11, 'x', shape), shaped(12, 'y', shape));
  return join(number(1, 10), bytes(7, graph), bytes(8, join(bytes(1, ''), number(2, 21))));
};

let state = 1;
const uniform = () => (state = (state * 48271) % 2147483647) / 2147483647;
const normal = () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());

for (const [side, mean] of [[64, 0], [64, 100], [64, 1000], [1024, 1000]]) {
  const shape = [1, 1, side, side], x = Float32Array.from({length: side * side}, () => mean + normal());
  let average = 0, variance = 0;
  for (const v of x) average += v / x.length;
  for (const v of x) variance += (v - average) ** 2 / x.length;
  const errors = [];
  for (const it of [model('InstanceNormalization', shape, [1], []), model('GroupNormalization', shape, [1], [integer('num_groups', 1)]),
                    model('LayerNormalization', shape, [side, side], [integer('axis', 2)])]) {
    const session = await ort.InferenceSession.create(it);
    const y = (await session.run({x: new ort.Tensor('float32', x, shape)})).y.data;
    let worst = 0;
    for (let i = 0; i < x.length; i++) worst = Math.max(worst, Math.abs(y[i] - (x[i] - average) / Math.sqrt(variance + 1e-5)));
    errors.push(worst);
  }
  console.log(side, mean, ...errors.map(e => e.toExponential(1)));
  const [instance, group, layer] = errors;
  const as = mean === 0 ? group < 1e-6 : mean === 100 ? group > 1e-4 : !(group < 0.01);
  if (!(instance < 2e-3 && layer < 2e-3 && as)) process.exitCode = 1;
}
JS
timeout -k 5 120 node norm.mjs
