"""Accounts and QOS as slurmk.yaml names them, in sacctmgr's words.

    accounts:
      root:    {GrpTRES: "cpu=512", cohort: research}
      physics: {fairshare: 2, GrpTRES: "cpu=64,gres/gpu=8", users: [alice]}
      theory:  {parent: physics, GrpJobs: 10, partitions: [cpu]}
    qos:
      high: {priority: 1000, GrpTRES: "gres/gpu=4", Preempt: [low]}
      low:  {PreemptMode: requeue, GraceTime: 60}

The root account is always there. Limits bind the account with all below it, in all partitions together.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bridge.kubernetes.settings import Settings
from grammar.errors import GrammarError
from grammar.tres import parse_tres
from slurmk.model.quotas import Quota, QuotaLimit

ROOT = "root"

HIGHEST_PRIORITY = 1_000_000_000
"""The highest value that a PriorityClass of users may have."""


PREEMPT_MODES = ("CLUSTER", "CANCEL", "REQUEUE", "SUSPEND", "OFF")
"""What may become of a QOS' jobs that give way; CLUSTER is what slurm.conf says."""


@dataclass(frozen=True, slots=True)
class Account:
    """One account. ``limits`` are (TRES, amount): cpu in thousandths, mem in MiB, ``job`` for GrpJobs.

    ``partitions`` None: all that the parent has. ``cohort`` (root only) is somebody else's Kueue Cohort that our tree is in.
    """

    name: str
    parent: str = ROOT
    fair_share: int = 1
    limits: tuple[tuple[str, int], ...] = ()
    partitions: tuple[str, ...] | None = None
    users: tuple[str, ...] = ()
    cohort: str = ""

    def limit(self, resource: str) -> int | None:
        return dict(self.limits).get(resource)


@dataclass(frozen=True, slots=True)
class Qos:
    """One QOS. ``priority`` is what its priority classes have. ``preempts`` are the QOS whose jobs its own preempt; the mode
    ("" for the cluster's), GraceTime and PreemptExemptTime (seconds) say how its own jobs give way."""

    name: str
    priority: int = 0
    limits: tuple[tuple[str, int], ...] = ()
    preempts: tuple[str, ...] = ()
    preempt_mode: str = ""
    grace_time: int = 0
    preempt_exempt_time: int | None = None


@dataclass(frozen=True, slots=True)
class Accounts:
    """The tree of accounts, by name and in the order of the file, and the QOS; ``normal`` is always among those."""

    accounts: Mapping[str, Account]
    qos: Mapping[str, Qos]

    def children(self, name: str) -> tuple[Account, ...]:
        return tuple(each for each in self.accounts.values() if each.parent == name and each.name != ROOT)

    def subtree(self, name: str) -> tuple[str, ...]:
        """The account and all below it."""
        return (name, *(below for child in self.children(name) for below in self.subtree(child.name)))

    def uses(self, name: str, partition: str) -> bool:
        """True when jobs of the account may run in the partition: neither it nor an account above says otherwise."""
        account = self.accounts[name]
        allowed = account.partitions is None or partition in account.partitions
        return allowed and (name == ROOT or self.uses(account.parent, partition))

    def charged(self, account: str) -> str:
        """The account whose queue a job of ``account`` uses: root for one that is not in the tree."""
        return account if account in self.accounts else ROOT

    def users(self) -> dict[str, tuple[str, ...]] | None:
        """The accounts that each user may charge, in the order of the file; None when no account names users."""
        found: dict[str, list[str]] = {}
        for account in self.accounts.values():
            for user in account.users:
                found.setdefault(user, []).append(account.name)
        return {user: tuple(names) for user, names in found.items()} or None


def read_accounts(settings: Settings) -> Accounts:
    """The accounts and QOS of slurmk.yaml. Raises GrammarError that begins with the key (``accounts.physics.GrpTRES: …``)."""
    accounts = {ROOT: Account(ROOT, "")}
    for name, said in settings.accounts.items():
        accounts[str(name)] = _account(str(name), said)
    for account in accounts.values():
        _check_parents(account, accounts)
    qos = {"normal": Qos("normal")}
    for name, said in settings.qos.items():
        values = _values(f"qos.{name}", said, _QOS_KEYS)
        qos[str(name)] = Qos(
            str(name),
            values.get("priority", 0),
            _limits(values),
            values.get("preempt", ()),
            values.get("preemptmode", ""),
            values.get("gracetime", 0),
            values.get("preemptexempttime"),
        )
    for each in qos.values():
        unknown = next((other for other in each.preempts if other not in qos), None)
        if unknown is not None:
            raise GrammarError(f"qos.{each.name}.Preempt: there is no QOS {unknown}")
    return Accounts(accounts, qos)


def limits_as_quotas(accounts: Accounts) -> tuple[Quota, ...]:
    """The limits of accounts and QOS as the planner keeps them; they count CPUs as Slurm does."""
    found = [
        Quota(f"account {account.name}", _quota_limits(account.limits), accounts=frozenset(accounts.subtree(account.name)))
        if account.name != ROOT
        else Quota("account root", _quota_limits(account.limits))
        for account in accounts.accounts.values()
        if account.limits
    ]
    found += [
        Quota(f"QOS {qos.name}", _quota_limits(qos.limits), qos=frozenset({qos.name}), reasons="QOSGrp")
        for qos in accounts.qos.values()
        if qos.limits
    ]
    return tuple(found)


def _quota_limits(limits: Iterable[tuple[str, int]]) -> tuple[QuotaLimit, ...]:
    return tuple(QuotaLimit(resource, amount) for resource, amount in limits)


def _account(name: str, said: Any) -> Account:
    key = f"accounts.{name}"
    values = _values(key, said, _ACCOUNT_KEYS)
    if name == ROOT and "parent" in values:
        raise GrammarError(f"{key}.parent: root has no parent")
    if name != ROOT and "cohort" in values:
        raise GrammarError(f"{key}.cohort: only root can be in another cohort")
    return Account(
        name,
        "" if name == ROOT else values.get("parent", ROOT),
        values.get("fairshare", 1),
        _limits(values),
        values.get("partitions"),
        values.get("users", ()),
        values.get("cohort", ""),
    )


def _check_parents(account: Account, accounts: Mapping[str, Account]) -> None:
    seen = {account.name}
    above = account
    while above.name != ROOT:
        if above.parent not in accounts:
            raise GrammarError(f"accounts.{above.name}.parent: there is no account {above.parent}")
        if above.parent in seen:
            raise GrammarError(f"accounts.{account.name}.parent: the account is below itself")
        above = accounts[above.parent]
        seen.add(above.name)


def _limits(values: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    limits = dict(values.get("grptres", {}))
    if "cpu" in limits:
        limits["cpu"] *= 1000
    if "grpjobs" in values:
        limits["job"] = values["grpjobs"]
    return tuple(limits.items())


# ------------------------------------------------------------------------------------------ reading values


def _values(key: str, said: Any, known: Mapping[str, tuple[str, Callable[[Any], Any]]]) -> dict[str, Any]:
    """The values of one entry by their keys in lower case, since sacctmgr does not tell cases apart."""
    if said is None:
        return {}
    if not isinstance(said, Mapping):
        raise GrammarError(f"{key}: expected keys and values")
    found: dict[str, Any] = {}
    for name, value in said.items():
        row = known.get(str(name).lower())
        if row is None:
            near = difflib.get_close_matches(str(name).lower(), known, 1)
            hint = f"; {known[near[0]][0]}?" if near else ""
            raise GrammarError(f"{key}.{name}: unknown key{hint}")
        try:
            found[str(name).lower()] = row[1](value)
        except (ValueError, TypeError) as error:
            raise GrammarError(f"{key}.{name}: {error}") from None
    return found


def _whole(least: int, most: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"expected a whole number from {least} to {most}")
        return value

    return read


def _name(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("expected a name")
    return value


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError("expected a list of names")
    return tuple(map(_name, value))


def _mode(value: Any) -> str:
    mode = str(value).upper() if isinstance(value, str) else ""
    if mode not in PREEMPT_MODES:
        raise ValueError(f"expected one of {', '.join(PREEMPT_MODES)}")
    return "" if mode == "CLUSTER" else mode


def _tres(value: Any) -> dict[str, int]:
    if not isinstance(value, str):
        raise ValueError("expected text like cpu=64,mem=256G,gres/gpu=8")
    found = parse_tres(value)
    for name in found:
        if name not in ("cpu", "mem", "node") and not name.startswith("gres/"):
            raise ValueError(f"{name} cannot be limited: cpu, mem, node and gres/NAME[:TYPE] can")
    return found


_ACCOUNT_KEYS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "parent": ("parent", _name),
    "fairshare": ("fairshare", _whole(1, 65535)),
    "grptres": ("GrpTRES", _tres),
    "grpjobs": ("GrpJobs", _whole(0, 1 << 31)),
    "partitions": ("partitions", _names),
    "users": ("users", _names),
    "cohort": ("cohort", _name),
}

_QOS_KEYS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "priority": ("priority", _whole(0, HIGHEST_PRIORITY)),
    "preempt": ("Preempt", _names),
    "preemptmode": ("PreemptMode", _mode),
    "gracetime": ("GraceTime", _whole(0, 1 << 31)),
    "preemptexempttime": ("PreemptExemptTime", _whole(0, 1 << 31)),
    "grptres": ("GrpTRES", _tres),
    "grpjobs": ("GrpJobs", _whole(0, 1 << 31)),
}
