/** A proposal that shares a pull request. */
export interface BatchCandidate {
  readonly proposal: string;
  readonly name: string;
  /** Folder of the package: a pull request has one proposal for it. */
  readonly path: string;
  /** Proposals of different policies share none. */
  readonly policy: string;
  readonly maxPackages: number;
  /** When it was proposed, RFC 3339. */
  readonly at: string;
  /** When this process saw it first, in milliseconds of running time. */
  readonly seenMs: number;
}

export interface Batch<Candidate extends BatchCandidate> {
  readonly branch: string;
  readonly members: readonly Candidate[];
}

/** A fan-out makes its proposals one after the other: they are waited for until none came for so long. */
export const QUIET_MS = 5000;
/** The first of them waits at most so long. */
export const MAX_WAIT_MS = 60_000;

/**
 * Assigns proposals to pull requests. A proposal stays where it is; a new one joins an open pull request with room, else one that the first
 * of them by time founds, so that every process finds the same. Returns how long further ones are waited for.
 */
export function planBatches<Candidate extends BatchCandidate>(
  candidates: readonly Candidate[],
  open: readonly { readonly branch: string; readonly proposals: readonly string[] }[],
  branchOf: (founder: string) => string,
  nowMs: number,
): { readonly batches: readonly Batch<Candidate>[]; readonly waitMs?: number } {
  const left = new Map(candidates.map((one) => [one.proposal, one]));
  const batches: { branch: string; members: Candidate[] }[] = [];
  for (const { branch, proposals } of open) {
    const members: Candidate[] = [];
    for (const proposal of proposals) {
      const member = left.get(proposal);
      if (member === undefined || members.some(({ path }) => path === member.path)) continue;
      left.delete(proposal);
      members.push(member);
    }
    batches.push({ branch, members });
  }
  let waitMs: number | undefined;
  for (const ofPolicy of Map.groupBy(left.values(), ({ policy }) => policy).values()) {
    const wait = waitFor(ofPolicy, nowMs);
    if (wait > 0) {
      waitMs = Math.min(waitMs ?? wait, wait);
      continue;
    }
    for (const one of ofPolicy.toSorted(byTime)) {
      const place = batches.find(({ members }) => hasRoom(members, one));
      if (place !== undefined) place.members.push(one);
      else batches.push({ branch: branchOf(one.proposal), members: [one] });
    }
  }
  return { batches, ...(waitMs === undefined ? {} : { waitMs }) };
}

function waitFor(waiting: readonly BatchCandidate[], nowMs: number): number {
  const seen = waiting.map(({ seenMs }) => seenMs);
  if (waiting.length >= Math.min(...waiting.map(({ maxPackages }) => maxPackages))) return 0;
  return Math.min(Math.max(...seen) + QUIET_MS, Math.min(...seen) + MAX_WAIT_MS) - nowMs;
}

function hasRoom(members: readonly BatchCandidate[], { policy, path, maxPackages }: BatchCandidate): boolean {
  const [first] = members;
  if (first?.policy !== policy || members.length >= maxPackages) return false;
  return members.every((one) => one.path !== path);
}

function byTime(one: BatchCandidate, other: BatchCandidate): number {
  if (one.at !== other.at) return one.at < other.at ? -1 : 1;
  return one.proposal < other.proposal ? -1 : 1;
}
