import { type Condition, conditionsOf, gatesOf } from '../../../../kptfile-schema/index.ts';
import { counted } from '../../../foundation/text/counted.ts';
import type { IndexChange } from '../../../package/index/state/index-delta.ts';
import { publishedRecordOf } from '../../../package/model/record/commit-message.ts';
import { verdictOf } from '../../../package/model/record/record.ts';
import { authorOf, claimedName, lastRequestOf, moveOf } from '../../../package/model/revision/attribution.ts';
import {
  isPlaceholder,
  isPublished,
  type PackageRevision,
  repositoryIdOf,
} from '../../../package/model/revision/package-revision.ts';
import type { LogEntry } from './log-entry.ts';

/** If at least this many revisions appear together, the log contains only their number. */
const MANY = 6;
/** Maximum number of packages that one entry lists. */
const NAMED = 3;
const UNKNOWN_ACTOR = 'an actor that is not known: its record is older than the last one known';

export interface NarrationOptions {
  /** True for a revision that an earlier process knew in the same state. */
  readonly wasKnown?: (revision: PackageRevision) => boolean;
  /** True for a package on the main branch with what the Git host was to merge, and that is published in a moment. */
  readonly isMerge?: (onMain: PackageRevision) => boolean;
  /** False for the id of a repository that is not registered any more. */
  readonly isRegistered?: (repositoryId: string) => boolean;
}

/**
 * Describes changes of the index for users: lifecycles, gates, edits. `now` in milliseconds since the epoch. Revisions that an
 * earlier process knew, and those of a repository that was unregistered, are only counted.
 */
export function narrateChanges(
  changes: readonly IndexChange[],
  now: number,
  { wasKnown = () => false, isMerge = () => false, isRegistered = () => true }: NarrationOptions = {},
): LogEntry[] {
  const gone = changes.flatMap(({ before, after }) =>
    after === undefined && before !== undefined && !isRegistered(repositoryIdOf(before)) ? [before] : [],
  );
  if (gone.length > 0) return unregistered(gone, now);
  const isKnown = ({ before, after }: IndexChange) => before === undefined && after !== undefined && wasKnown(after);
  const [known, news] = [changes.filter(isKnown), changes.filter((change) => !isKnown(change))];
  const shown = known.flatMap(({ after }) => after ?? []).filter((row) => !isPlaceholder(row));
  return [...summarise(shown, now, 'as before'), ...describeBatch(news, now, isMerge)];
}

function describeBatch(
  changes: readonly IndexChange[],
  now: number,
  isMerge: (onMain: PackageRevision) => boolean,
): LogEntry[] {
  const real = changes.filter(({ before, after }) => {
    const row = after ?? before;
    if (row === undefined || !isPlaceholder(row)) return row !== undefined;
    return changedOnMain({ before, after }) && !isMerge(row);
  });
  const onMain = real.filter(
    ({ before, after }) => before !== undefined && after !== undefined && isPlaceholder(after),
  );
  const found = real.filter(({ before, after }) => before === undefined && after !== undefined);
  const entries =
    found.length >= MANY
      ? summarise(
          found.flatMap(({ after }) => after ?? []),
          now,
          'found',
        )
      : [];
  // A rewritten main branch is one entry, regardless of the number of packages on it.
  if (onMain.length > 1) entries.push(...differing(onMain, now));
  for (const change of real) {
    if (onMain.length > 1 && onMain.includes(change)) continue;
    if (found.length >= MANY && change.before === undefined) continue;
    entries.push(...narrate(change, now));
  }
  return entries;
}

function differing(changes: readonly IndexChange[], at: number): LogEntry[] {
  const rows = changes.flatMap(({ after }) => after ?? []);
  return [...Map.groupBy(rows, (row) => row.key.repository)].map(([repository, packages]) => {
    const names = packages.slice(0, NAMED).map(({ key }) => key.package);
    const more = packages.length > NAMED ? ` and ${packages.length - NAMED} more` : '';
    const message = `the main branch differs from what was published for ${packages.length} packages: ${names.join(', ')}${more}`;
    return { at, level: 'warn', event: 'OutOfBand', subject: repository, message, fields: { count: packages.length } };
  });
}

function summarise(rows: readonly PackageRevision[], at: number, what: 'found' | 'as before'): LogEntry[] {
  return [...Map.groupBy(rows, repositoryIdOf)].map(([id, revisions]) => {
    const repository = id.slice(id.indexOf('/') + 1);
    const counts = [...Map.groupBy(revisions, (row) => row.lifecycle)].map(([name, list]) => `${list.length} ${name}`);
    const message = `${counted(revisions.length, 'package revision')} ${what} (${counts.join(', ')})`;
    return { at, level: 'info', event: 'Found', subject: repository, message, fields: { count: revisions.length } };
  });
}

/** Their data stays in Git: they were not deleted. The changes of such a repository come together. */
function unregistered(rows: readonly PackageRevision[], at: number): LogEntry[] {
  return [...Map.groupBy(rows, repositoryIdOf)].map(([id, revisions]) => {
    const repository = id.slice(id.indexOf('/') + 1);
    const { length: count } = revisions.filter((row) => !isPlaceholder(row));
    const message = `unregistered; ${counted(count, 'package revision')} ${count === 1 ? 'stays' : 'stay'} in Git`;
    return { at, level: 'info', event: 'Unregistered', subject: repository, message, fields: { count } };
  });
}

/** True if a push from outside Sluice changed a published package on the main branch; a deletion leaves the branch as it is. */
export function changedOnMain({ before, after }: IndexChange): boolean {
  if (before === undefined || after?.outOfBand === undefined || before.commit === after.commit) return false;
  return before.outOfBand?.reason !== after.outOfBand.reason;
}

function narrate({ before, after }: IndexChange, at: number): LogEntry[] {
  const row = after ?? before;
  if (row === undefined) return [];
  const entry = (
    event: string,
    message: string,
    fields: Record<string, unknown> = {},
    level: 'info' | 'warn' = 'info',
  ) =>
    ({
      at,
      level,
      event,
      subject: row.name,
      message,
      fields: { ...fields, namespace: row.namespace, commit: row.commit },
    }) satisfies LogEntry;
  if (after === undefined) return [entry('Removed', `${row.lifecycle} was deleted`, { lifecycle: row.lifecycle })];
  const entries: LogEntry[] = [];
  if (before === undefined) {
    entries.push(entry(after.lifecycle, found(after), { lifecycle: after.lifecycle, by: lastRequestOf(after).by }));
  } else if (before.lifecycle !== after.lifecycle) {
    entries.push(entry(after.lifecycle, moved(before, after), movedFields(before, after)));
    const broken = after.lifecycle === 'Published' ? brokenGlass(after) : undefined;
    if (broken !== undefined) entries.push(entry('BreakGlass', broken.message, { by: broken.by }, 'warn'));
  } else if (before.commit !== after.commit && !isPlaceholder(after)) entries.push(...edited(before, after, entry));
  if (after.problem !== undefined && after.problem !== before?.problem) {
    entries.push(entry('Unreadable', `the Kptfile cannot be read: ${after.problem}`, {}, 'warn'));
  }
  // Of a publication that another process deletes, the mark can be seen before the tag is gone.
  const isBehindOnly = before?.refOid === after.refOid && after.outOfBand?.behind !== undefined;
  if (after.outOfBand !== undefined && before?.outOfBand === undefined && !isBehindOnly) {
    const { reason, message } = after.outOfBand;
    entries.push(entry('OutOfBand', `did not come through the gates: ${message}`, { reason }, 'warn'));
  }
  return entries;
}

type MakeEntry = (event: string, message: string, fields?: Record<string, unknown>) => LogEntry;

/** Returns an entry for each changed condition; for an edit without one, the subject of its commit. */
function edited(before: PackageRevision, after: PackageRevision, entry: MakeEntry): LogEntry[] {
  const [old, next] = [conditionsOfRow(before), conditionsOfRow(after)];
  const isUnknown = isActorUnknown(before, after);
  const gates = new Set(after.kptfile === undefined ? [] : gatesOf(after.kptfile));
  const entries: LogEntry[] = [];
  for (const type of new Set([...next.keys(), ...old.keys()])) {
    const [from, to] = [old.get(type), next.get(type)];
    if (from?.status === to?.status && from?.reason === to?.reason && from?.message === to?.message) continue;
    const by = isUnknown ? undefined : (verdictOf(after.record, type)?.by ?? authorOf(after));
    const what = gates.has(type) ? 'gate' : 'condition';
    const output = [to?.reason, to?.message].filter((text) => text !== undefined && text !== '').join(': ');
    const opened = what === 'gate' && to?.status === 'True' && from?.status !== 'True';
    const state = to === undefined ? 'withdrawn' : opened ? 'open' : to.status;
    const message = `${what} ${type} ${state}, by ${by === undefined ? UNKNOWN_ACTOR : actorText(by)}${output === '' ? '' : `: ${output}`}`;
    entries.push(entry(opened ? 'GateOpened' : 'Condition', message, { type, status: to?.status ?? 'withdrawn', by }));
  }
  if (entries.length > 0) return entries;
  return [entry('Edited', `changed by ${actorText(authorOf(after))}: ${after.tip.subject}`, { by: authorOf(after) })];
}

function conditionsOfRow({ kptfile }: PackageRevision): Map<string, Condition> {
  return kptfile === undefined ? new Map() : conditionsOf(kptfile);
}

function found(row: PackageRevision): string {
  const number = row.revision > 0 ? ` v${row.revision}` : '';
  const { by } = lastRequestOf(row);
  const claim = claimedName(by);
  const last = claim === undefined ? `last by ${by}` : `pushed (author: ${claim})`;
  return `found as ${row.lifecycle}${number}, ${last}`;
}

/**
 * True if the record that names the actor is older than the last one known: another process may have written since the refs were read, which then
 * emits the Event. Of a publication its own statement names the actor.
 */
function isActorUnknown(before: PackageRevision, after: PackageRevision): boolean {
  return after.recordDistrust?.behind !== undefined && (!isPublished(after) || isPublished(before));
}

/** Names an actor, or the author of a push whom no trusted statement has. */
function actorText(by: string): string {
  const claim = claimedName(by);
  return claim === undefined ? by : `a push (author: ${claim})`;
}

function moved(before: PackageRevision, after: PackageRevision): string {
  const number = after.revision > 0 && after.lifecycle === 'Published' ? ` v${after.revision}` : '';
  const step = `${before.lifecycle} → ${after.lifecycle}${number}`;
  if (isActorUnknown(before, after)) return `${step}, by ${UNKNOWN_ACTOR}`;
  const { by, reason } = moveOf(before, after);
  const why = reason === undefined ? '' : ` (${reason})`;
  return `${step}, by ${actorText(by)}${why}`;
}

function movedFields(before: PackageRevision, after: PackageRevision): Record<string, unknown> {
  if (isActorUnknown(before, after)) return { from: before.lifecycle, to: after.lifecycle };
  const { by, reason } = moveOf(before, after);
  return { from: before.lifecycle, to: after.lifecycle, by, ...(reason === undefined ? {} : { reason }) };
}

/**
 * Returns who published it with closed gates and why; undefined if the gates were open, or if there is no trusted
 * statement about it.
 */
function brokenGlass(row: PackageRevision): { by: string; message: string } | undefined {
  const record = row.outOfBand === undefined ? publishedRecordOf(row.tip.facts) : undefined;
  if (record?.breakGlass === undefined) return undefined;
  const { by, reason } = record.breakGlass;
  const closed = (record.gates ?? []).flatMap(({ type, state }) => (state === 'Open' ? [] : `${type} (${state})`));
  const rules = record.rulesBypassed ?? [];
  const what = [
    ...(closed.length > 0 ? [`with closed gates: ${closed.join(', ')}`] : []),
    ...(rules.length > 0 ? [`while rules blocked it: ${rules.join('; ')}`] : []),
  ];
  return { by, message: `${by} published it ${what.join(', and ')}; reason: ${reason}` };
}
