import type { TargetHistory } from '../../src/delivery/dora/change.ts';
import { type DeliveryEvent, isPlausible } from '../../src/delivery/dora/record-deliveries.ts';
import { joinPath } from '../../src/delivery/path-rules.ts';
import { packageKey } from '../../src/delivery/selection/select-revisions.ts';
import { KUSTOMIZATION, readOwner } from '../../src/delivery/tree/kustomization.ts';
import type { GitRepository, Oid } from '../../src/git/git-repository.ts';
import { type DeliveryCommit, deliveryCommits, type WalkEnd } from '../delivery/delivery-history.ts';

/** Files that name the owner of a folder in the first line: of manifests and of kustomizations, and of charts. */
const OWNER_FILES = [KUSTOMIZATION, 'Chart.yaml'] as const;
const MAX_OWNER_FILE_BYTES = 256 * 1024;
/** Files in memory at a time. */
const FILES_PER_READ = 50;

export interface ReadDeliveries {
  /** The oldest first. */
  readonly events: readonly DeliveryEvent[];
  readonly end: WalkEnd;
}

export interface DeliveredPlace {
  /** The name that the commits of the target have. */
  readonly target: string;
  /** Without slashes at its ends. */
  readonly directory: string;
}

/** The deliveries of a target that its history does not have yet; undefined if the repository does not have the commit. */
export async function readDeliveries(
  git: GitRepository,
  head: Oid,
  { target, directory }: DeliveredPlace,
  history: TargetHistory,
): Promise<ReadDeliveries | undefined> {
  const [stat] = await git.statObjects([head]);
  if (stat?.type !== 'commit') return undefined;
  const commits: DeliveryCommit[] = [];
  const walk = deliveryCommits(git, head, target, { until: history.commit });
  let step = await walk.next();
  while (step.done !== true) {
    commits.unshift(step.value);
    step = await walk.next();
  }
  const known = new Set(history.changes.map(packageKey));
  const events: DeliveryEvent[] = [];
  const unknown: { readonly at: number; readonly parent: Oid; readonly folder: string }[] = [];
  for (const { delivered, removed, time, parent } of commits) {
    for (const { repository, package: path, revision } of delivered) {
      const event = { repository, package: path, revision, time };
      if (!isPlausible(event)) continue;
      if (!known.has(packageKey(event)) && parent !== undefined)
        unknown.push({ at: events.length, parent, folder: joinPath(directory, path) });
      known.add(packageKey(event));
      events.push(event);
    }
    for (const one of removed) events.push({ ...one, revision: undefined, time });
  }
  const before = await revisionsBefore(git, target, unknown);
  for (const { at, parent, folder } of unknown) {
    const event = events[at];
    const revision = before.get(`${parent}:${folder}`);
    if (event !== undefined && revision !== undefined) events[at] = { ...event, before: revision };
  }
  return { events: step.value === 'known' ? events : newOnly(events, history), end: step.value };
}

/** Another writer has replaced the commits of the branch, so that those of earlier deliveries come again. */
function newOnly(events: readonly DeliveryEvent[], { changes }: TargetHistory): readonly DeliveryEvent[] {
  const last = changes.at(-1);
  return last === undefined ? events : events.filter(({ time }) => time > Date.parse(last.deliveredAt));
}

/** The revision that each folder of a package had before its delivery, by `<commit>:<folder>`. */
async function revisionsBefore(
  git: GitRepository,
  target: string,
  wanted: readonly { readonly parent: Oid; readonly folder: string }[],
): Promise<Map<string, number>> {
  const places = wanted.flatMap(({ parent, folder }) =>
    OWNER_FILES.map((file) => ({ key: `${parent}:${folder}`, specification: `${parent}:${joinPath(folder, file)}` })),
  );
  const stats = await git.statObjects(places.map(({ specification }) => specification));
  const readable = places.filter((_, index) => {
    const stat = stats[index];
    return stat?.type === 'blob' && stat.size <= MAX_OWNER_FILE_BYTES;
  });
  const revisions = new Map<string, number>();
  for (let start = 0; start < readable.length; start += FILES_PER_READ) {
    const part = readable.slice(start, start + FILES_PER_READ);
    const files = await git.readObjects(part.map(({ specification }) => specification));
    for (const [index, { key }] of part.entries()) {
      const file = files[index];
      const owner = file && readOwner(file.data);
      if (owner?.target === target && owner.revision !== undefined) revisions.set(key, owner.revision);
    }
  }
  return revisions;
}
