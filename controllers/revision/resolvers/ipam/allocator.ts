import { allocate, allocateAll } from '../../../../src/allocation/allocate.ts';
import { AllocationTable } from '../../../../src/allocation/allocation-table.ts';
import {
  type Assignment,
  type Claim,
  claimFromObject,
  type OwnerKey,
  ownerText,
  statusRange,
} from '../../../../src/allocation/claim.ts';
import { type Range, rangeKey } from '../../../../src/allocation/ipv4.ts';
import type { AllocationOutcome } from '../../../../src/allocation/outcome.ts';
import { Mutex } from '../../../../src/foundation/concurrency/mutex.ts';
import { isSluiceError, messageOf } from '../../../../src/foundation/sluice-error.ts';
import type { Clock } from '../../../../src/foundation/time/clock.ts';
import type { KrmObject } from '../../../../src/package/model/krm/krm.ts';
import { formatConditionType } from '../../../../src/package/model/policy/condition-type.ts';
import { publishedRecordOf } from '../../../../src/package/model/record/commit-message.ts';
import { verdictsByType } from '../../../../src/package/model/record/record.ts';
import {
  isPublished,
  type PackageRevision,
  revisionId,
} from '../../../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../../../src/package/store/revision-store.ts';
import { ClaimReader } from './claim-reader.ts';
import { ownerRepository } from './claim-result.ts';
import type { Pools } from './read-pools.ts';

export interface AllocatorOptions {
  readonly store: RevisionStore;
  readonly clock: Clock;
  /** Milliseconds for which a value stays reserved for its owner after the last revision with the claim is deleted. */
  readonly gracePeriod: number;
  /** Called with a revision whose claims cannot be read. */
  readonly onProblem: (revision: string, message: string) => void;
}

/**
 * Milliseconds for which an allocated value that was never written stays reserved: longer than any reconciliation
 * takes.
 */
const RESERVATION_MS = 600_000;
/** Revisions that are read concurrently. */
const MAX_CONCURRENT_READS = 16;

interface Reservations {
  readonly until: number;
  /** The commit of the draft for which the values were allocated. While the draft is at it, they cannot have been written. */
  readonly commit: string | undefined;
  readonly assignments: readonly Assignment[];
}

/**
 * Allocates addresses of all network instances. Owners are derived from the claims in all revisions of all
 * repositories; only unwritten and recently released values are in memory.
 */
export class Allocator {
  readonly #options: AllocatorOptions;
  readonly #reader = new ClaimReader();
  readonly #mutex = new Mutex();
  /** Ids of revisions that changed since they were read. */
  readonly #changed: Set<string>;
  readonly #assignments = new Map<string, readonly Assignment[]>();
  /** Ids of revisions whose objects are damaged, by name: their addresses are unknown until the repository is repaired. */
  readonly #damaged = new Map<string, string>();
  readonly #reserved = new Map<string, Reservations>();
  #released: Assignment[] = [];
  #releases = 0;
  #table: AllocationTable;
  #poolVersion = '';

  constructor(options: AllocatorOptions) {
    this.#options = options;
    this.#table = new AllocationTable([], options);
    const { store } = options;
    this.#changed = new Set(store.list().map(revisionId));
    store.subscribe((changes) => {
      for (const { before, after } of changes) {
        const revision = after ?? before;
        if (revision !== undefined) this.#changed.add(revisionId(revision));
      }
    });
    store.onPromotion((repository) => {
      for (const revision of store.list({ repository })) this.#changed.add(revisionId(revision));
    });
  }

  /** True if a revision has or reserves a value, so that a change of it may release one. */
  hasValues(revision: string): boolean {
    return this.#assignments.has(revision) || this.#reserved.has(revision);
  }

  /** Names of revisions that cannot be read because their repository is damaged. */
  get damaged(): readonly string[] {
    return [...this.#damaged.values()];
  }

  /** The number of releases: a value is released when its last revision is deleted or no longer claims it. */
  get releases(): number {
    return this.#releases;
  }

  /** Reads the changes in the repositories. Throws Unavailable and similar errors; the caller retries. */
  refresh(): Promise<void> {
    return this.#mutex.run(async () => {
      const now = this.#options.clock.now();
      for (const [name, { until }] of this.#reserved) if (until <= now) this.#unreserve(name);
      this.#released = this.#released.filter(({ released = 0 }) => released + this.#options.gracePeriod > now);
      // A repair changes no revision, so these are read each time.
      for (const name of this.#damaged.keys()) this.#changed.add(name);
      while (this.#changed.size > 0) {
        const names = [...this.#changed].slice(0, MAX_CONCURRENT_READS);
        for (const name of names) this.#changed.delete(name);
        try {
          await Promise.all(names.map((name) => this.#reread(name)));
        } catch (error) {
          for (const name of names) this.#changed.add(name);
          throw error;
        }
      }
    });
  }

  /**
   * Allocates values for all claims of one draft, in their order. An allocated value is reserved until it is written, or for some
   * minutes. With `onlyHeld`, or while a revision is `damaged`, no new value is allocated: a claim without a value gets undefined.
   */
  async allocate(
    revision: string,
    claims: readonly Claim[],
    pools: Pools,
    onlyHeld: boolean,
  ): Promise<readonly (AllocationOutcome | undefined)[]> {
    await this.refresh();
    // There is no await from here on, so no other draft can interfere.
    this.#usePools(pools);
    const now = this.#options.clock.now();
    if (onlyHeld || this.#damaged.size > 0) {
      const found = claims.map((claim) => allocate(this.#table, claim, now));
      return found.map((outcome) => (outcome.allocated?.how === 'held' ? outcome : undefined));
    }
    const { outcomes, taken } = allocateAll(this.#table, claims, now);
    const wanted = new Set(claims.flatMap((claim, place) => this.#keys(claim.owner, outcomes[place])));
    const kept = (this.#reserved.get(revision)?.assignments ?? []).filter((assignment) =>
      wanted.has(keyOf(assignment)),
    );
    const assignments = [...kept, ...taken, ...this.#reclaimed(claims, outcomes, now)];
    this.#reserve(revision, assignments, now);
    return outcomes;
  }

  /** Frees a value that was allocated to a claim and cannot be written. */
  cancel(revision: string, owner: OwnerKey): void {
    const assignments = this.#reserved.get(revision)?.assignments ?? [];
    this.#reserve(
      revision,
      assignments.filter((assignment) => ownerText(assignment.owner) !== ownerText(owner)),
    );
  }

  /** True if the value in the status of a claim belongs to another owner. */
  isForeign(claim: Claim): boolean {
    const range = statusRange(claim);
    const instance = this.#table.instance(claim.networkInstance);
    if (range === undefined || instance === undefined) return false;
    return instance.otherOwnersIn(range, claim.owner).length > 0 && !instance.hasPrecedence(claim.owner, range);
  }

  #keys(owner: OwnerKey, outcome: AllocationOutcome | undefined): string[] {
    const range = outcome?.allocated?.range;
    return range === undefined ? [] : [keyOf({ owner, range })];
  }

  /** Released values that their former owner claims again. */
  #reclaimed(claims: readonly Claim[], outcomes: readonly AllocationOutcome[], now: number): Assignment[] {
    return claims.flatMap((claim, place) => {
      const given = outcomes[place]?.allocated;
      const { owner, networkInstance } = claim;
      if (given === undefined || this.#isLive(networkInstance, owner, given.range)) return [];
      const assignment = { owner, networkInstance, range: given.range, published: false, since: now };
      this.#table.add(assignment);
      return [assignment];
    });
  }

  #isLive(networkInstance: string, owner: OwnerKey, range: Range): boolean {
    const entries = this.#table.instance(networkInstance)?.entriesOf(owner) ?? [];
    const assignments = entries
      .find((entry) => rangeKey(entry.range) === rangeKey(range))
      ?.byOwner.get(ownerText(owner));
    return assignments !== undefined && this.#table.freeAt(assignments) === undefined;
  }

  #usePools({ pools, version }: Pools): void {
    if (version === this.#poolVersion) return;
    this.#poolVersion = version;
    this.#table = new AllocationTable(pools, this.#options);
    for (const assignments of this.#assignments.values())
      for (const assignment of assignments) this.#table.add(assignment);
    for (const { assignments } of this.#reserved.values())
      for (const assignment of assignments) this.#table.add(assignment);
    for (const assignment of this.#released) this.#table.add(assignment);
  }

  async #reread(name: string): Promise<void> {
    const { store } = this.#options;
    const found = store.find(name);
    // Its claims count for the namespace that registered the repository first.
    const revision = found !== undefined && store.repositoryOf(found).follows ? undefined : found;
    const claims = revision === undefined ? [] : await this.#claimsOf(revision);
    // Its values must count as allocated.
    if (claims === undefined) return;
    this.#damaged.delete(name);
    const next = revision === undefined ? [] : claims.flatMap((object) => assignmentOf(revision, object));
    const before = this.#assignments.get(name) ?? [];
    for (const assignment of next) this.#table.add(assignment);
    for (const assignment of before) this.#table.remove(assignment);
    if (next.length === 0) this.#assignments.delete(name);
    else this.#assignments.set(name, next);
    const written = new Set(next.map(keyOf));
    const isDraft = revision?.lifecycle === 'Draft';
    const open = this.#reserved
      .get(name)
      ?.assignments.filter((assignment) => isDraft && !written.has(keyOf(assignment)));
    if (open !== undefined) this.#reserve(name, open);
    this.#release(before);
  }

  /**
   * Replaces the reservations of a draft; with `now` the time of all restarts. A dropped value may have been written and
   * overwritten before the draft was read again, so it is released unless the draft is unchanged.
   */
  #reserve(name: string, assignments: readonly Assignment[], now?: number): void {
    const old = this.#reserved.get(name);
    const commit = this.#options.store.find(name)?.commit;
    const dropped = (old?.assignments ?? []).filter((assignment) => !assignments.includes(assignment));
    for (const assignment of dropped) this.#table.remove(assignment);
    if (assignments.length === 0) this.#reserved.delete(name);
    else if (now !== undefined) this.#reserved.set(name, { until: now + RESERVATION_MS, commit, assignments });
    else if (old !== undefined) this.#reserved.set(name, { ...old, assignments });
    if (old?.commit !== commit) this.#release(dropped);
  }

  /** Starts the grace period of values without a holder. */
  #release(assignments: readonly Assignment[]): void {
    const lost = new Map(assignments.map((assignment) => [keyOf(assignment), assignment]));
    for (const assignment of lost.values()) {
      const { networkInstance, owner, range } = assignment;
      const others = this.#table.instance(networkInstance)?.otherOwnersIn(range, owner) ?? [];
      const isHeld = others.some((assignments) => this.#table.freeAt(assignments) === undefined);
      if (isHeld || this.#isLive(networkInstance, owner, range)) continue;
      const released = { ...assignment, released: this.#options.clock.now() };
      this.#released.push(released);
      this.#releases += 1;
      this.#table.add(released);
    }
  }

  #unreserve(name: string): void {
    for (const assignment of this.#reserved.get(name)?.assignments ?? []) this.#table.remove(assignment);
    this.#reserved.delete(name);
  }

  /** Undefined if the claims cannot be read: this is reported, and the revision keeps its values. */
  async #claimsOf(revision: PackageRevision): Promise<readonly KrmObject[] | undefined> {
    const { store, onProblem } = this.#options;
    const { tree } = revision.tip;
    if (tree === undefined) return [];
    const id = revisionId(revision);
    try {
      return await this.#reader.read(store.repositoryOf(revision).git, tree);
    } catch (error) {
      // Its repository was removed in the meantime, which causes a separate event.
      if (store.find(id) === undefined) return [];
      const isDamaged = DAMAGED.some((code) => isSluiceError(error, code));
      if (!isDamaged && !UNREADABLE.some((code) => isSluiceError(error, code))) throw error;
      const consequence = isDamaged
        ? 'no new address is allocated until its repository is repaired'
        : 'it keeps the addresses that it has';
      if (!this.#damaged.has(id))
        onProblem(revision.name, `its IP claims cannot be read; ${consequence}: ${messageOf(error)}`);
      if (isDamaged) this.#damaged.set(id, revision.name);
      else this.#damaged.delete(id);
      return undefined;
    }
  }
}

/** Objects that the revision's tree names are missing or damaged: a missing file never counts as a file without claims. */
const DAMAGED = ['Corrupt', 'NotFound'] as const;
/** The content exceeds what Sluice reads, so this revision can make no new claim. */
const UNREADABLE = ['LimitExceeded', 'InvalidInput'] as const;

function keyOf({ owner, range }: { readonly owner: OwnerKey; readonly range: Range }): string {
  return `${ownerText(owner)} ${rangeKey(range)}`;
}

/** Returns the value of a claim in a revision, according to its status. */
function assignmentOf(revision: PackageRevision, object: KrmObject): Assignment[] {
  const claim = claimFromObject(object.value, ownerRepository(revision), revision.key.package);
  const range = 'problem' in claim ? undefined : statusRange(claim);
  if ('problem' in claim || range === undefined) return [];
  const { owner, networkInstance } = claim;
  return [{ owner, networkInstance, range, published: isPublished(revision), since: sinceOf(revision, object) }];
}

/**
 * Returns the start of the assignment: the time of the verdict if there is one, since each commit updates the time of a
 * draft.
 */
function sinceOf(revision: PackageRevision, object: KrmObject): number {
  const verdicts = (isPublished(revision) ? publishedRecordOf(revision.tip.facts) : revision.record)?.verdicts ?? [];
  const given = verdictsByType(verdicts).get(formatConditionType(object));
  const since = given?.status !== 'True' ? Number.NaN : Date.parse(given.since);
  return Number.isNaN(since) ? revision.tip.time : since;
}
