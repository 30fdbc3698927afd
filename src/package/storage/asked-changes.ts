import { SluiceError } from '../../foundation/sluice-error.ts';
import { invalidObject, invalidValue } from '../../resource/invalid-object.ts';
import {
  LATEST_REVISION_LABEL,
  type PackageRevision as RevisionObject,
} from '../../resource/kinds/package-revision.ts';
import type { Stored } from '../../resource/object.ts';
import { sameValue } from '../../resource/same-value.ts';
import type { Action, Lifecycle } from '../kernel/types.ts';
import type { PackageRevision } from '../package-revision.ts';
import type { RevisionChange } from '../write/change.ts';
import type { RevisionSource } from '../write/revision-source.ts';
import { OUT_OF_BAND_ANNOTATION, PROBLEM_ANNOTATION } from './revision-object.ts';

/** How a new object asks to be made. */
export function sourceOf(object: RevisionObject): RevisionSource {
  const tasks = object.spec.tasks ?? [];
  const [task] = tasks;
  if (tasks.length > 1)
    throw invalid(object, ['spec', 'tasks'], tasks.length, 'task list must not contain more than one task');
  if (task === undefined) return { type: 'init' };
  if (task.type === 'init') {
    const { description, keywords, site } = task.init ?? {};
    return {
      type: 'init',
      ...(description === undefined ? {} : { description }),
      ...(keywords === undefined ? {} : { keywords }),
      ...(site === undefined ? {} : { site }),
    };
  }
  if (task.type === 'edit' && task.edit !== undefined) return { type: 'copy', source: task.edit.sourceRef.name };
  throw new SluiceError(
    'Unsupported',
    `a package revision cannot be created by a task of type ${JSON.stringify(task.type)}`,
  );
}

/** The step that a change of `spec.lifecycle` through the main resource asks for. */
export function stepByUpdate(stored: RevisionObject, object: RevisionObject): Action | undefined {
  const before = stored.spec.lifecycle;
  const after = object.spec.lifecycle ?? before;
  if (before === after) return undefined;
  if (before === 'Draft' && after === 'Proposed') return 'propose';
  if (before === 'Proposed' && after === 'Draft') return 'reject';
  if (before === 'Published' && after === 'DeletionProposed') return 'propose-deletion';
  if (before === 'DeletionProposed' && after === 'Published') return 'undo-deletion';
  throw invalid(
    object,
    ['spec', 'lifecycle'],
    after,
    `cannot change from ${before} here; publishing is done through the approval sub-resource`,
  );
}

/** The step that a write of the approval sub-resource asks for. */
export function stepByApproval(before: Lifecycle | undefined, object: RevisionObject): Action | undefined {
  const after = object.spec.lifecycle;
  if (before === 'Draft') return 'approve';
  if (before === after) return undefined;
  if (before === 'Proposed' && after === 'Published') return 'approve';
  if (before === 'Proposed' && after === 'Draft') return 'reject';
  if (before === 'Published' && after === 'DeletionProposed') return 'propose-deletion';
  if (before === 'DeletionProposed' && after === 'Published') return 'undo-deletion';
  throw invalid(object, ['spec', 'lifecycle'], after, `cannot change from ${before}`);
}

/** What else differs; undefined if nothing. */
export function changeOf(
  stored: RevisionObject,
  object: RevisionObject,
  revision: PackageRevision,
): RevisionChange | undefined {
  const kptfile = kptfileEdits(stored, object);
  const metadata = metadataChange(stored, object);
  if (kptfile.length > 0 && revision.lifecycle !== 'Draft' && revision.lifecycle !== 'Proposed') {
    throw invalid(
      object,
      ['spec'],
      '',
      `the spec of a ${revision.lifecycle} package revision cannot change, besides its lifecycle`,
    );
  }
  if (kptfile.length === 0 && metadata === undefined) return undefined;
  return { kptfile, ...(metadata === undefined ? {} : { metadata }) };
}

function kptfileEdits(
  stored: RevisionObject,
  object: RevisionObject,
): NonNullable<RevisionChange['kptfile']>[number][] {
  const edits: NonNullable<RevisionChange['kptfile']>[number][] = [];
  const before = (stored.spec.readinessGates ?? []).map((gate) => gate.conditionType);
  const after = (object.spec.readinessGates ?? []).map((gate) => gate.conditionType);
  for (const conditionType of after) if (!before.includes(conditionType)) edits.push({ op: 'addGate', conditionType });
  for (const conditionType of before)
    if (!after.includes(conditionType)) edits.push({ op: 'removeGate', conditionType });
  const { labels = {}, annotations = {} } = object.spec.packageMetadata ?? {};
  const old = stored.spec.packageMetadata ?? {};
  for (const [key, value] of differing(old.labels, labels)) {
    edits.push(value === undefined ? { op: 'removeLabel', key } : { op: 'setLabel', key, value });
  }
  for (const [key, value] of differing(old.annotations, annotations)) {
    edits.push(value === undefined ? { op: 'removeAnnotation', key } : { op: 'setAnnotation', key, value });
  }
  return edits;
}

function differing(
  before: Readonly<Record<string, string>> = {},
  after: Readonly<Record<string, string>>,
): [string, string | undefined][] {
  const changed = Object.entries(after).filter(([key, value]) => before[key] !== value);
  const removed = Object.keys(before).filter((key) => after[key] === undefined);
  return [...changed, ...removed.map((key): [string, undefined] => [key, undefined])];
}

function metadataChange(stored: RevisionObject, object: RevisionObject): RevisionChange['metadata'] | undefined {
  const wanted = ownMetadata(object);
  return sameValue(ownMetadata(stored), wanted) ? undefined : (wanted as unknown as RevisionChange['metadata']);
}

/** Metadata without what the server itself puts there. */
export function ownMetadata(object: RevisionObject) {
  const { [LATEST_REVISION_LABEL]: _latest, ...labels } = object.metadata.labels ?? {};
  const {
    [OUT_OF_BAND_ANNOTATION]: _flag,
    [PROBLEM_ANNOTATION]: _problem,
    ...annotations
  } = object.metadata.annotations ?? {};
  return {
    labels,
    annotations,
    ownerReferences: [...(object.metadata.ownerReferences ?? [])],
    finalizers: [...(object.metadata.finalizers ?? [])],
  };
}

/** Porch's clients expect this label to be the server's own. */
export function refuseManagedLabel(stored: RevisionObject | undefined, object: RevisionObject): void {
  const before = stored?.metadata.labels?.[LATEST_REVISION_LABEL];
  const after = object.metadata.labels?.[LATEST_REVISION_LABEL];
  if (after !== undefined && after !== before) {
    throw invalid(
      object,
      ['metadata', 'labels', LATEST_REVISION_LABEL],
      after,
      'Forbidden: the label is set by the server',
    );
  }
}

/** Whoever waits for the end of a deletion must not be made to wait anew. */
export function refuseLateFinalizer(stored: Stored<RevisionObject>, object: RevisionObject): void {
  if (stored.metadata.deletionTimestamp === undefined) return;
  const known = stored.metadata.finalizers ?? [];
  const added = (object.metadata.finalizers ?? []).filter((finalizer) => !known.includes(finalizer));
  if (added.length > 0) {
    const rule = 'no finalizer can be added while the object is being deleted';
    throw invalid(object, ['metadata', 'finalizers'], added, rule);
  }
}

/** An error about one field of a package revision. */
export function invalid(object: RevisionObject, path: string[], value: unknown, message: string): SluiceError {
  return invalidObject(`PackageRevision "${object.metadata.name}"`, [invalidValue(path, value, message)]);
}
