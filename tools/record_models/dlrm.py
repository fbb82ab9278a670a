"""A DLRM-style recommender: one whole training step (copy in, forward, backward, optimiser).

Shape follows Naumov et al., "Deep Learning Recommendation Model" (arXiv 1906.00091): 26 categorical features as in the Criteo
data, multi-hot lookups summed per sample, bottom MLP, pairwise dot interaction, top MLP. Sizes are far smaller than a production
model's: the point is many small tasks with a real dependency structure, not bandwidth.

Gradients of the tables are dense on purpose. A sparse gradient tensor hides its index and value memory from the execution trace,
so the hazards through it would be missing from the recording; with dense ones every access is visible.
"""

BATCH = 128
DENSE_FEATURES = 13
TABLES = 26
DIM = 32
# Lookups per sample and rows per table vary from table to table, so that the tasks of the tables are not all of one length.
ROWS = [64 << (table * 7 % 8) for table in range(TABLES)]  # 64 … 8192
BAG = [1 + table * 5 % 8 for table in range(TABLES)]  # 1 … 8
BOTTOM = [DENSE_FEATURES, 256, 128, DIM]
TOP = [DIM + TABLES * (TABLES + 1) // 2, 256, 128, 1]


def build(torch, device, seed):
    nn = torch.nn
    generator = torch.Generator().manual_seed(seed)

    def mlp(widths, last_is_linear):
        layers = []
        for index, (fan_in, fan_out) in enumerate(zip(widths, widths[1:])):
            layers.append(nn.Linear(fan_in, fan_out))
            if not (last_is_linear and index == len(widths) - 2):
                layers.append(nn.ReLU())
        return nn.Sequential(*layers)

    class Dlrm(nn.Module):
        def __init__(self):
            super().__init__()
            self.bottom = mlp(BOTTOM, last_is_linear=False)
            self.top = mlp(TOP, last_is_linear=True)
            self.tables = nn.ModuleList(nn.EmbeddingBag(rows, DIM, mode="sum", sparse=False) for rows in ROWS)
            pairs = torch.tril_indices(TABLES + 1, TABLES + 1, offset=-1)
            self.register_buffer("pair_row", pairs[0].contiguous())
            self.register_buffer("pair_column", pairs[1].contiguous())

        def forward(self, dense, indices, offsets):
            bottom = self.bottom(dense)
            looked_up = [table(i, o) for table, i, o in zip(self.tables, indices, offsets)]
            features = torch.stack([bottom] + looked_up, dim=1)  # batch × (tables + 1) × DIM
            products = torch.bmm(features, features.transpose(1, 2))
            interactions = products[:, self.pair_row, self.pair_column]
            return self.top(torch.cat([bottom, interactions], dim=1)).squeeze(1)

    torch.manual_seed(seed)
    model = Dlrm().to(device).train()
    loss_of = nn.BCEWithLogitsLoss()
    # The optimiser of MLPerf's DLRM, in torch's default form (multi-tensor kernels on a GPU): tasks with over a hundred accesses.
    optimiser = torch.optim.Adagrad(model.parameters(), lr=0.01)

    def pinned(tensor):
        return tensor.pin_memory() if device.type == "cuda" else tensor

    host_dense = pinned(torch.rand(BATCH, DENSE_FEATURES, generator=generator))
    host_labels = pinned(torch.randint(0, 2, (BATCH,), generator=generator).float())
    host_indices = [
        pinned(torch.randint(0, rows, (BATCH * bag,), generator=generator)) for rows, bag in zip(ROWS, BAG)
    ]
    host_offsets = [pinned(torch.arange(0, BATCH * bag, bag)) for bag in BAG]

    def step():
        dense = host_dense.to(device, non_blocking=True)
        labels = host_labels.to(device, non_blocking=True)
        indices = [tensor.to(device, non_blocking=True) for tensor in host_indices]
        offsets = [tensor.to(device, non_blocking=True) for tensor in host_offsets]
        optimiser.zero_grad(set_to_none=True)
        loss = loss_of(model(dense, indices, offsets), labels)
        loss.backward()
        optimiser.step()

    def about():
        return {
            "what": "one training step: copy in, forward, backward, Adagrad",
            "batch": BATCH,
            "tables": TABLES,
            "rows": ROWS,
            "lookups_per_sample": BAG,
            "embedding_dim": DIM,
            "bottom_mlp": BOTTOM,
            "top_mlp": TOP,
            "table_gradients": "dense",
        }

    return step, about
