"""peer.py NET IMAGE BATCH train|infer fp32|tf32|bf16|fp16 cuda|cpu - PyTorch at its best, a number of steps per line read.

NET: torchvision's, or gpt2 (transformers), whose IMAGE is the length of its texts. channels_last, cudnn.benchmark, autocast for bf16 and fp16 (in inference the weights themselves), random pixels or ids that are
on the GPU already; steps are timed one by one, to their end. Answers one JSON object per line."""
import json
import statistics
import sys
import time

import torch
import torchvision


def set_math(prec):
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = prec != "fp32"
    torch.backends.cuda.matmul.allow_tf32 = prec != "fp32"


class Gpt2(torch.nn.Module):
    """124 M parameters, texts of `length` tokens; the scores of all places, as torchvision's networks give those of an image."""

    def __init__(self, length):
        from transformers import GPT2Config, GPT2LMHeadModel
        super().__init__()
        self.inner = GPT2LMHeadModel(GPT2Config(n_positions=length, use_cache=False, attn_implementation="sdpa", resid_pdrop=0.0,
                                                embd_pdrop=0.0, attn_pdrop=0.0))

    def forward(self, ids):
        return self.inner(ids).logits.flatten(0, 1)


def made(net, image, batch, device):
    """(model, what goes in, labels)"""
    if net == "gpt2":
        ids = torch.randint(0, 50257, (batch, image), device=device)
        return Gpt2(image).to(device), ids, ids.roll(-1, 1).flatten()
    model = getattr(torchvision.models, net)().to(device).to(memory_format=torch.channels_last)
    x = torch.randn(batch, 3, image, image, device=device).to(memory_format=torch.channels_last)
    return model, x, torch.randint(0, 1000, (batch,), device=device)


def inference(model, x, dtype):
    model = model.eval().to(dtype)
    x = x.to(dtype) if x.is_floating_point() else x

    @torch.no_grad()
    def step():
        return model(x)
    return step


def training(model, x, labels, dtype, device):
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    scaler = torch.cuda.amp.GradScaler() if dtype == torch.float16 else None
    low = dtype != torch.float32

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, dtype=dtype if low else torch.bfloat16, enabled=low):
            loss = torch.nn.functional.cross_entropy(model(x), labels)
        (scaler.scale(loss) if scaler else loss).backward()
        if scaler:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
    return step


def main():
    net, image, batch, mode, prec, device = sys.argv[1:7]
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(prec, torch.float32)
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    set_math(prec)
    model, x, labels = made(net, int(image), int(batch), device)
    step = inference(model, x, dtype) if mode == "infer" else training(model, x, labels, dtype, device)
    for _ in range(3 if device == "cuda" else 1):
        step()
    wait()
    most = torch.cuda.max_memory_allocated() if device == "cuda" else None
    print(json.dumps({"version": torch.__version__, "prec": prec, "peak_bytes": most}), flush=True)
    for line in sys.stdin:
        step()
        wait()
        times = []
        for _ in range(int(line)):
            began = time.perf_counter()
            step()
            wait()
            times.append(time.perf_counter() - began)
        print(json.dumps({"step_s": statistics.median(times), "steps_s": times}), flush=True)


if __name__ == "__main__":
    main()
