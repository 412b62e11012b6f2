"""How an amount is divided among accounts: by their fair shares, but to none more than its GrpTRES allows.

What a limit keeps an account from having goes to its siblings. What no child may have stays with the account itself. So the
portions of a tree add up to what there is, and an account whose limit is below its share is guaranteed its whole limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bridge.kubernetes.queues.accounts import ROOT, Account, Accounts


@dataclass(frozen=True, slots=True)
class Portion:
    """What an account with all below it is given, how much of that is for its own jobs, and the most it may have."""

    subtree: int
    own: int
    ceiling: int | None  # None: no limit of its own


def portions(accounts: Accounts, amount: int, ceiling_of: Callable[[Account], int | None]) -> dict[str, Portion]:
    """The portions of all accounts by name. ``ceiling_of`` is an account's limit, 0 where it may have none at all."""
    found: dict[str, Portion] = {}

    def give(account: Account, given: int) -> None:
        children = accounts.children(account.name)
        shares = _divide(given, [(child.fair_share, ceiling_of(child)) for child in children])
        found[account.name] = Portion(given, given - sum(shares), ceiling_of(account))
        for child, share in zip(children, shares, strict=True):
            give(child, share)

    root = accounts.accounts[ROOT]
    ceiling = ceiling_of(root)
    give(root, amount if ceiling is None else min(amount, ceiling))
    return found


def _divide(amount: int, claims: Iterable[tuple[int, int | None]]) -> list[int]:
    """Whole amounts by weight, none above its ceiling, as much as possible in all."""
    weights_ceilings = list(claims)
    given = [0] * len(weights_ceilings)
    open_ = [index for index, (_, ceiling) in enumerate(weights_ceilings) if ceiling is None or ceiling > 0]
    left = amount
    while open_:
        total = sum(weights_ceilings[index][0] for index in open_)
        full = []
        for index in open_:
            weight, ceiling = weights_ceilings[index]
            if ceiling is not None and ceiling * total <= left * weight:
                full.append(index)
        if not full:
            break
        for index in full:
            ceiling = weights_ceilings[index][1]
            assert ceiling is not None
            given[index] = ceiling
        left -= sum(given[index] for index in full)
        open_ = [index for index in open_ if index not in full]
    remaining = sum(weights_ceilings[index][0] for index in open_)
    for index in open_:
        weight = weights_ceilings[index][0]
        given[index] = left * weight // remaining
        left -= given[index]
        remaining -= weight
    return given
