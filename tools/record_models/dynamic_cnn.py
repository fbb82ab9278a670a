"""A convolutional network at batch 1 whose path depends on its input; the step is inference of four different images.

Each cell owns four branches (3×3 pair, separable 5×5, 1×1, pooled 1×1) and a gate that looks at the cell's input. The host reads
the gate's verdict with .item() and launches only the chosen branches, so a different image gives a different task graph; after
the sixth cell an image that is already confident leaves through an early exit. This is the pattern of SkipNet, InstaNAS and
dynamic routing, on which the ACS paper (arXiv 2401.12377) measures.

Gates of an untrained network would nearly all say the same thing, so `build` calibrates them: biases are set, cell after cell, to the
median over a set of calibration images, which makes each branch a coin flip over images but fixed for any one image.
"""

IMAGES = 4
CALIBRATION_IMAGES = 16
SIDE = 64
WIDTHS = [32, 32, 48, 48, 64, 64, 96, 96]  # channels out of each cell
HALVES_AT = {2, 4, 6}  # cells that halve the picture first
EXIT_AFTER = 6  # cells before the early exit
CLASSES = 10
BRANCHES = 4


def build(torch, device, seed):
    nn = torch.nn
    functional = nn.functional
    generator = torch.Generator().manual_seed(seed)

    def unit(fan_in, fan_out, kernel, groups=1):
        return nn.Sequential(
            nn.Conv2d(fan_in, fan_out, kernel, padding=kernel // 2, groups=groups, bias=False),
            nn.BatchNorm2d(fan_out),
            nn.ReLU(),
        )

    class Cell(nn.Module):
        def __init__(self, fan_in, fan_out, halves):
            super().__init__()
            self.halves = halves
            self.shortcut = nn.Conv2d(fan_in, fan_out, 1, bias=False)
            self.branches = nn.ModuleList([
                nn.Sequential(unit(fan_in, fan_out, 3), unit(fan_out, fan_out, 3)),
                nn.Sequential(unit(fan_in, fan_in, 5, groups=fan_in), unit(fan_in, fan_out, 1)),
                unit(fan_in, fan_out, 1),
                nn.Sequential(nn.AvgPool2d(3, stride=1, padding=1), unit(fan_in, fan_out, 1)),
            ])
            self.gate = nn.Sequential(nn.Linear(fan_in, 16), nn.ReLU(), nn.Linear(16, BRANCHES))
            self.register_buffer("bit", 2 ** torch.arange(BRANCHES))

        def reduce(self, x):
            return functional.max_pool2d(x, 2) if self.halves else x

        def logits(self, x):
            return self.gate(functional.layer_norm(x.mean(dim=(2, 3)), (x.shape[1],)))

        def choose(self, x):
            """The bit mask of the branches to run: the host waits here, as any data-dependent network's host does."""
            return int(((self.logits(x) > 0).squeeze(0) * self.bit).sum().item())

        def forward(self, x):
            x = self.reduce(x)
            chosen = self.choose(x)
            y = self.shortcut(x)
            for index, branch in enumerate(self.branches):
                if chosen >> index & 1:
                    y = y + branch(x)
            return functional.relu(y), chosen

    class DynamicCnn(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = unit(3, WIDTHS[0], 3)
            fan_ins = [WIDTHS[0]] + WIDTHS[:-1]
            self.cells = nn.ModuleList(
                Cell(fan_in, fan_out, index in HALVES_AT) for index, (fan_in, fan_out) in enumerate(zip(fan_ins, WIDTHS))
            )
            self.exit_head = nn.Linear(WIDTHS[EXIT_AFTER - 1], CLASSES)
            self.head = nn.Linear(WIDTHS[-1], CLASSES)
            self.confident_from = 1.0

        def confidence(self, x):
            probabilities = functional.softmax(self.exit_head(x.mean(dim=(2, 3))), dim=1)
            return probabilities, probabilities.max()

        def forward(self, image):
            path = []
            x = self.stem(image)
            for index, cell in enumerate(self.cells):
                x, chosen = cell(x)
                path.append(chosen)
                if index + 1 == EXIT_AFTER:
                    probabilities, confidence = self.confidence(x)
                    if confidence.item() > self.confident_from:
                        return probabilities, path
            return functional.softmax(self.head(x.mean(dim=(2, 3))), dim=1), path

        def calibrate(self, images):
            """Centre every gate and the exit on `images`, in network order, so that later cells see what they will really see."""
            activations = [self.stem(image) for image in images]
            for index, cell in enumerate(self.cells):
                logits = torch.cat([cell.logits(cell.reduce(x)) for x in activations])
                cell.gate[-1].bias -= logits.median(dim=0).values
                activations = [cell(x)[0] for x in activations]
                if index + 1 == EXIT_AFTER:
                    confidences = sorted(float(self.confidence(x)[1]) for x in activations)
                    self.confident_from = confidences[len(confidences) // 2]

    def images(count):
        """Pictures that differ in more than noise: waves of random direction, frequency and colour, some contrast, some grain."""
        ramp = torch.linspace(0, 1, SIDE)
        result = []
        for _ in range(count):
            u = torch.rand(3, 4, generator=generator)
            phase = (8 * u[:, 0]).view(3, 1, 1) * ramp.view(1, SIDE, 1) + (8 * u[:, 1]).view(3, 1, 1) * ramp.view(1, 1, SIDE)
            grain = torch.rand(3, SIDE, SIDE, generator=generator)
            picture = u[:, 2].view(3, 1, 1) + torch.sin(6.2832 * phase) * (2 * u[:, 3]).view(3, 1, 1) + 0.3 * grain
            result.append(picture.unsqueeze(0))
        return result

    torch.manual_seed(seed)
    # Plain parameters without gradients: inference, and calibration may write the biases in place.
    model = DynamicCnn().to(device).eval().requires_grad_(False)
    model.calibrate([image.to(device) for image in images(CALIBRATION_IMAGES)])
    host_images = [image.pin_memory() if device.type == "cuda" else image for image in images(IMAGES)]
    last_paths = []

    def step():
        last_paths.clear()
        with torch.inference_mode():
            for host_image in host_images:
                _, path = model(host_image.to(device, non_blocking=True))
                last_paths.append(path)

    def about():
        return {
            "what": "inference of four images, one after another, batch 1",
            "images": IMAGES,
            "image": [3, SIDE, SIDE],
            "cell_widths": WIDTHS,
            "branches_per_cell": BRANCHES,
            "early_exit_after_cells": EXIT_AFTER,
            "paths": [list(path) for path in last_paths],
            "paths_are": "per image, per cell executed: bit mask of the branches the gate chose",
            "distinct_paths": len({tuple(path) for path in last_paths}),
        }

    return step, about
