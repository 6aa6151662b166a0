"""describe.py - what this machine is: GPU, driver, libraries, cuDNN's description of the GPU, PyTorch."""
import json
import shutil
import sys

from steps.harness import Failed, OutOfTime, Refused

SMI = ("name,driver_version,memory.total,memory.used,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.limit,temperature.gpu,"
       "persistence_mode,compute_mode,mig.mode.current")
TORCH = """import json, torch
print(json.dumps({"torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(),
                  "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None}))"""


def gpu(s, data):
    if not shutil.which("nvidia-smi"):
        data["nvidia_smi"] = None
        return
    done = s.command(["nvidia-smi", f"--query-gpu={SMI}", "--format=csv,noheader"], 15, plain=True)
    rows = [dict(zip(SMI.split(","), (x.strip() for x in line.split(",")))) for line in done.out.splitlines() if line.strip()]
    data["nvidia_smi"] = rows if done.code == 0 else done.why()


def torch(s, data):
    try:
        done = s.command([sys.executable, "-c", TORCH], 60, plain=True)
        data["torch"] = json.loads(done.out.splitlines()[-1]) if done.code == 0 else None
    except OutOfTime:
        data["torch"] = None


def properties(s, data):
    """The text with which plans are checked where there is no GPU (tests/data/h100.json is an H100's)."""
    program = s.place.program("gpu_properties")
    if not program.exists():
        data["device_properties"] = None
        return
    done = s.command([program], 30)
    if done.code:
        raise Failed(f"cuDNN does not describe this GPU: {done.why()}")
    data["device_properties"] = json.loads(done.out[done.out.index("{"):])
    (s.results_path.parent / "device_properties.json").write_text(done.out)


def loading(s):
    """Why the GPU's part does not load."""
    done = s.command([s.place.program("hplan-exec"), "--version"], 30)
    return "its GPU part does not load: " + " | ".join((done.err + done.out).split("\n"))[:400]


def machine(s, data):
    """This GPU as `--machine` takes it: rates of its data sheet, which what is predicted stands on."""
    done = s.command([s.place.program("hplan"), "machine", "--detect"], 30)
    data["machine"] = done.out if done.code == 0 else done.why()
    if done.code == 0:
        s.known["machine"] = s.work / "here.machine"
        s.known["machine"].write_text(done.out)


def describe(s, data):
    data.update(s.place.facts())
    gpu(s, data)
    done = s.command([s.place.program("hplan"), "doctor", "--json"], 30)
    data["doctor"] = json.loads(done.out) if done.code == 0 else done.why()
    part = ((data["doctor"].get("hplan_exec") or {}).get("cuda") if isinstance(data["doctor"], dict) else None) or ""
    s.known["gpu"] = bool(part) and "no GPU" not in part
    s.results["device"] = "stand-in for a GPU: nothing here ran on one" if s.place.stand_in else part or "unknown"
    torch(s, data)
    if not s.known["gpu"]:
        lacks = f"; this machine lacks {', '.join(s.place.missing())}" if s.place.missing() else ""
        raise Refused(f"hplan finds no GPU: {part or loading(s)}{lacks}")
    if not s.place.stand_in:  # whose rates are nobody's
        machine(s, data)
    properties(s, data)
