"""A small transformer encoder at batch 1 that leaves early when it is sure; the step is inference of four different sequences.

Every layer is followed by a small classifier. The host reads its confidence with .item() and, once it is high enough, launches none of
the remaining layers: a different sequence gives a different number of tasks. This is the pattern of BranchyNet, DeeBERT and
confident adaptive language modelling. Queries, keys and values have a projection each, attention is written out as matrix products
and a softmax, as in the reference implementations of BERT.

Exits of an untrained network would all say the same thing, so `build` calibrates them: from layer to layer, the threshold is set so
that a quarter of those calibration sequences that are still inside leaves.
"""

SEQUENCES = 4
CALIBRATION_SEQUENCES = 32
TOKENS = 48
VOCABULARY = 1000
DIM = 128
HEADS = 4
HIDDEN = 512
LAYERS = 10
CLASSES = 8
LEAVING_SHARE = 0.25  # of those still inside, at each exit


def build(torch, device, seed):
    nn = torch.nn
    functional = nn.functional
    generator = torch.Generator().manual_seed(seed)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention_norm = nn.LayerNorm(DIM)
            self.query, self.key, self.value = (nn.Linear(DIM, DIM) for _ in range(3))
            self.mix = nn.Linear(DIM, DIM)
            self.hidden_norm = nn.LayerNorm(DIM)
            self.widen = nn.Linear(DIM, HIDDEN)
            self.narrow = nn.Linear(HIDDEN, DIM)

        def forward(self, x):  # tokens × DIM
            y = self.attention_norm(x)
            q, k, v = (
                projection(y).view(-1, HEADS, DIM // HEADS).transpose(0, 1) for projection in (self.query, self.key, self.value)
            )
            weights = functional.softmax(q @ k.transpose(1, 2) * (DIM // HEADS) ** -0.5, dim=-1)
            x = x + self.mix((weights @ v).transpose(0, 1).reshape(-1, DIM))
            return x + self.narrow(functional.gelu(self.widen(self.hidden_norm(x))))

    class EarlyExitTransformer(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(VOCABULARY, DIM)
            self.places = nn.Embedding(TOKENS, DIM)
            self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
            self.exits = nn.ModuleList(nn.Sequential(nn.LayerNorm(DIM), nn.Linear(DIM, CLASSES)) for _ in range(LAYERS))
            self.register_buffer("numbers", torch.arange(TOKENS))
            self.confident_from = [2.0] * LAYERS  # more than a probability can be: nobody leaves before calibration

        def embed(self, words):
            return self.words(words) + self.places(self.numbers)

        def answer(self, index, x):
            return functional.softmax(self.exits[index](x.mean(dim=0)), dim=0)

        def forward(self, words):
            x = self.embed(words)
            for index, layer in enumerate(self.layers):
                x = layer(x)
                probabilities = self.answer(index, x)
                # The host waits here, as any early-exit network's host does.
                if index + 1 == LAYERS or probabilities.max().item() > self.confident_from[index]:
                    return probabilities, index + 1

        def calibrate(self, sequences):
            """Sets the thresholds layer after layer, each on the sequences that the earlier exits left inside."""
            inside = [self.embed(words) for words in sequences]
            for index, layer in enumerate(self.layers[:-1]):
                inside = [layer(x) for x in inside]
                confidences = [float(self.answer(index, x).max()) for x in inside]
                staying = sorted(confidences)[: max(1, round((1 - LEAVING_SHARE) * len(inside)))]
                self.confident_from[index] = staying[-1]
                inside = [x for x, confidence in zip(inside, confidences) if confidence <= staying[-1]]

    def sequences(count):
        """Sentences that differ in more than noise: each draws its words from a small vocabulary of its own."""
        result = []
        for _ in range(count):
            own = torch.randint(VOCABULARY, (12,), generator=generator)
            result.append(own[torch.randint(12, (TOKENS,), generator=generator)])
        return result

    torch.manual_seed(seed)
    model = EarlyExitTransformer().to(device).eval().requires_grad_(False)
    with torch.inference_mode():
        model.calibrate([words.to(device) for words in sequences(CALIBRATION_SEQUENCES)])
    host_sequences = [words.pin_memory() if device.type == "cuda" else words for words in sequences(SEQUENCES)]
    last_exits = []

    def step():
        last_exits.clear()
        with torch.inference_mode():
            for host_words in host_sequences:
                _, layers = model(host_words.to(device, non_blocking=True))
                last_exits.append(layers)

    def about():
        return {
            "what": "inference of four sequences, one after another, batch 1",
            "sequences": SEQUENCES,
            "tokens": TOKENS,
            "dim": DIM,
            "heads": HEADS,
            "hidden": HIDDEN,
            "layers": LAYERS,
            "layers_run": list(last_exits),
            "distinct_paths": len(set(last_exits)),
        }

    return step, about
