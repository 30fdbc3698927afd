import { compareText, joinPath, normalizeDirectory } from '../../../src/delivery/path-rules.ts';
import { isAboutRollbackOf } from '../../../src/delivery/rollback/impossible-rollback-text.ts';
import { packageKey } from '../../../src/delivery/selection/select-revisions.ts';
import { messageOf } from '../../../src/foundation/sluice-error.ts';
import { ellipsize } from '../../../src/foundation/text/shorten.ts';
import type { PackageRevision } from '../../../src/package/model/revision/package-revision.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import { type Event, eventKind, lastSeen } from '../../../src/resource/kinds/core/event.ts';
import {
  type DeliveryTarget,
  deliveryTargetKind,
} from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { findCondition } from '../../../src/resource/object/condition.ts';
import { DEFAULT_NAMESPACE, type Stored } from '../../../src/resource/object/object.ts';

/** Events of a target that are searched; a server keeps them for about an hour. */
const MAX_EVENTS = 500;
const MAX_NOTE_CHARACTERS = 500;

/**
 * What is known of a target that concerns a revision besides its delivery: changes of other writers, rollbacks, and syncs that could not be
 * started. No content of the branch: readers of an explanation need not be readers of the target.
 */
export async function targetNotes(
  client: Client,
  target: Stored<DeliveryTarget>,
  revision: PackageRevision,
  signal: AbortSignal | undefined,
): Promise<string[]> {
  const notes = [...rollbackNotes(target, revision), ...driftNotes(target, revision)];
  try {
    const { namespace = DEFAULT_NAMESPACE, name } = target.metadata;
    const fieldSelector = `involvedObject.kind=${deliveryTargetKind.kind},involvedObject.name=${name}`;
    const filter = { namespace, fieldSelector, limit: MAX_EVENTS };
    const { items } = await client.list(eventKind, { ...filter, ...(signal === undefined ? {} : { signal }) });
    notes.push(...eventNotes(items, target, revision));
  } catch (error) {
    notes.push(`the events of the target cannot be read: ${messageOf(error)}`);
  }
  return notes.map((note) => ellipsize(note, MAX_NOTE_CHARACTERS));
}

function rollbackNotes({ metadata, status }: Stored<DeliveryTarget>, { key, revision }: PackageRevision): string[] {
  const own = status?.rollbacks?.find((one) => packageKey(one) === packageKey(key) && one.to === revision);
  if (own === undefined) return [];
  return [
    `rolled back: v${own.from} failed (${own.time}): ${own.reason}; this revision is delivered until the next publication, or until "sluice target resume ${metadata.name}"`,
  ];
}

/** A change that stays. */
function driftNotes({ spec, status, metadata }: Stored<DeliveryTarget>, { key }: PackageRevision): string[] {
  const drifted = findCondition(status?.conditions, 'Drifted');
  if (drifted?.status !== 'True') return [];
  const folder = joinPath(normalizeDirectory(spec.git.directory), key.package);
  const [summary = '', ...lines] = drifted.message.split('\n');
  const own = lines.find((line) => line.startsWith(`${folder} (v`));
  if (own !== undefined)
    return [
      `drifted: ${own.replace(/:$/, '')}; the change is kept (spec.drift: Report); see condition Drifted of target ${metadata.name}`,
    ];
  // The condition has room for some folders only.
  const described = lines.filter((line) => / \(v\d+\) was changed by /.test(line)).length;
  const total = Number(/changed (\d+) folder/.exec(summary)?.[1] ?? 0);
  return total > described ? [`drifted, perhaps this package: ${summary}`] : [];
}

function eventNotes(
  events: readonly Stored<Event>[],
  target: Stored<DeliveryTarget>,
  { key, revision }: PackageRevision,
): string[] {
  const { lastCommit } = target.status ?? {};
  const folder = joinPath(normalizeDirectory(target.spec.git.directory), key.package);
  const notes = new Map<string, string>();
  const inOrder = events.toSorted((a, b) => Date.parse(lastSeen(a) ?? '') - Date.parse(lastSeen(b) ?? ''));
  for (const event of inOrder) {
    const { reason, message, involvedObject } = event;
    if (involvedObject.uid !== target.metadata.uid) continue;
    const at = lastSeen(event);
    const add = (word: string, text: string) =>
      notes.set(word, `${word}${at === undefined ? '' : ` (${at})`}: ${text}`);
    // The last line of a text of several ones is the difference, which is content.
    const [first = ''] = message.split('\n');
    if (reason === 'SyncNotTriggered' && lastCommit !== undefined && first.includes(lastCommit.slice(0, 12)))
      add('trigger failed', first);
    if (reason === 'RollbackImpossible') {
      const isOwn = isAboutRollbackOf(first, { ...key, revision });
      if (isOwn !== false) add(isOwn === true ? 'no rollback' : 'no rollback, perhaps of this package', first);
    }
    if (reason === 'Drifted' && first.startsWith(`repaired: ${folder} (v`))
      add('drifted', `${first.slice('repaired: '.length).replace(/:$/, '')}; the change was repaired`);
  }
  // Of each kind the last one; events of the same time have no order.
  return [...notes].sort(([a], [b]) => compareText(a, b)).map(([, note]) => note);
}
