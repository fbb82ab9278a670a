"""One optimiser step that launches many small kernels: clipping, AdamW and an average of the weights, one parameter at a time.

This is what a training loop does with the for-loop implementation of an optimiser (torch's `foreach=False`), which is what one gets
with per-parameter rules, custom optimisers and frameworks without fused ones: about ten element-wise kernels of a few microseconds for
each parameter tensor, a chain within a parameter and independent between parameters. Everything of a fixed shape, so that a CUDA
graph could be recorded; the scalars of the step are known to the host.

Gradients come from a backward pass in `build` and are scaled by another factor at each step, so that every step has work to do.
"""

WIDTHS = [32, 96, 64, 160, 48, 128, 80, 112, 64, 144, 32]
SKIPS = 6  # further small tensors: gains and shifts of normalisation layers
BATCH = 64
NORM_MAX = 1.0
AVERAGE_DECAY = 0.999


def build(torch, device, seed):
    nn = torch.nn
    torch.manual_seed(seed)
    layers = []
    for index, (fan_in, fan_out) in enumerate(zip(WIDTHS, WIDTHS[1:])):
        layers += [nn.Linear(fan_in, fan_out), nn.ReLU()]
        if index < SKIPS:
            layers.append(nn.LayerNorm(fan_out))
    model = nn.Sequential(*layers).to(device)
    parameters = list(model.parameters())
    averages = [parameter.detach().clone() for parameter in parameters]
    optimiser = torch.optim.AdamW(parameters, lr=1e-3, foreach=False, fused=False)

    model(torch.randn(BATCH, WIDTHS[0], device=device)).square().mean().backward()
    steps_done = 0

    def step():
        nonlocal steps_done
        steps_done += 1
        with torch.no_grad():
            for parameter in parameters:
                parameter.grad.mul_(1 + 1 / (1 + steps_done))
            nn.utils.clip_grad_norm_(parameters, NORM_MAX, foreach=False)
            optimiser.step()
            for average, parameter in zip(averages, parameters):
                average.lerp_(parameter, 1 - AVERAGE_DECAY)

    def about():
        return {
            "what": "one step: gradients scaled, clipped by their norm, AdamW for each parameter alone, running average of the weights",
            "parameters": len(parameters),
            "elements": sum(parameter.numel() for parameter in parameters),
            "smallest": min(parameter.numel() for parameter in parameters),
            "largest": max(parameter.numel() for parameter in parameters),
        }

    return step, about
