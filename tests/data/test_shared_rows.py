"""Calibration rows that train or choose the model are found, and others are not taken for such."""

import numpy as np
import scipy.sparse
import torch
from torch.utils.data import BatchSampler, DataLoader, SubsetRandomSampler, TensorDataset

import setpoint as sp
from setpoint.data.shared_rows import shared_rows
from setpoint.data.sketch import row_hashes, share_known, sketch_of


def data(size, seed):
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(size, 4, generator=draw), (torch.rand(size, generator=draw) < 0.3).float()


def test_sparse_rows_are_compared_and_rows_that_training_repeats_say_nothing_on_chance():
    x, labels = data(600, 4)
    fresh, held_out = data(300, 5), sp.Batches(*data(300, 6))
    old, new, some = (sp.Batches(scipy.sparse.csr_array(part.numpy()), torch.zeros(len(part)))
                      for part in (x, fresh[0], x[:200]))  # fmt: skip
    assert shared_rows(old, [old], look=True) == "all"
    assert shared_rows(some, [old, new], look=True) == "200 of 200"
    assert shared_rows(new, [old], look=True) == ""
    often = torch.cat([torch.arange(600), torch.arange(130).repeat(5)])
    mixed = sp.Batches(torch.cat([x[:200], fresh[0]]), torch.cat([labels[:200], fresh[1]]))
    assert shared_rows(mixed, [sp.Batches(x[often], labels[often]), held_out], look=True) == "200 of 500"


def test_other_rows_of_one_dataset_are_not_shared():
    dataset = TensorDataset(*data(600, 1))
    parts = [DataLoader(dataset, batch_sampler=BatchSampler(SubsetRandomSampler(range(a, a + 200)), 50, False))
             for a in (0, 200, 400)]  # fmt: skip
    assert shared_rows(parts[2], parts[:2], look=True) == ""
    whole = [DataLoader(dataset, batch_size=50, shuffle=shuffle) for shuffle in (False, True)]
    assert shared_rows(whole[0], whole[1:], look=True) == "all"


def test_rows_of_few_values_are_rarely_taken_for_shared_ones():
    """However much larger than the others: in 200 draws of each, none."""
    draw, refused = torch.Generator().manual_seed(0), 0
    for train, own, levels, columns in ((200, 5000, 12, 3), (200, 2000, 12, 3), (300, 20_000, 30, 2), (200, 50, 5, 3)):
        for _ in range(50):
            parts = [torch.randint(levels, (n, columns), generator=draw).float() for n in (own, train, train // 2)]
            new, *others = (sp.Batches(x, torch.zeros(len(x))) for x in parts)
            refused += bool(shared_rows(new, others, look=True))
    assert refused <= 1


def test_a_row_that_is_frequent_everywhere_makes_no_known_table():
    """One hash within reach of the sketch is in both tables, 400 times in the new one, whose other rows are new."""
    old = np.arange(60_000, dtype=np.uint64) * np.uint64(1000)
    new = np.append(old + np.uint64(1), np.full(400, 5000, dtype=np.uint64))
    assert share_known(new, sketch_of(old)) < 0.05
    assert share_known(old, sketch_of(old)) == 1


def test_hashes_do_not_depend_on_how_many_rows_are_hashed_at_a_time():
    x = torch.randn(40, 60_000, generator=torch.Generator().manual_seed(0))
    alone = [row_hashes(row.unsqueeze(0), torch.zeros(1))[0] for row in x]
    assert row_hashes(x, torch.zeros(40)).tolist() == alone
