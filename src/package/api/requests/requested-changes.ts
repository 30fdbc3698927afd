import type { KptfileEdit } from '../../../../kptfile-schema/index.ts';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import {
  LATEST_REVISION_LABEL,
  type PackageRevision as RevisionObject,
} from '../../../resource/kinds/porch/package-revision.ts';
import { forbidden, invalidObject, invalidValue } from '../../../resource/object/invalid-object.ts';
import type { Stored } from '../../../resource/object/object.ts';
import type { RequestContext } from '../../../resource/object/request-context.ts';
import { sameValue } from '../../../resource/object/same-value.ts';
import { ownersWritten } from '../../model/record/owners.ts';
import { APPROVAL_ANNOTATIONS } from '../../model/revision/lifecycle-annotations.ts';
import type { PackageRevision } from '../../model/revision/package-revision.ts';
import type { Action, Lifecycle } from '../../model/revision/revision-state.ts';
import type { RevisionChange } from '../../plan/edit/change.ts';
import { REBASE_MODES, type RebaseMode } from '../../plan/edit/rebase.ts';
import {
  AFFIRM_ANNOTATION,
  BREAK_GLASS_ANNOTATION,
  REBASE_ANNOTATION,
  withoutManaged,
} from '../objects/revision-object.ts';

/**
 * Warns the writer about parts of a write that are ignored: the server determines names, and the tasks of a package cannot be changed
 * afterwards.
 */
export function warnOfIgnored(context: RequestContext, stored: RevisionObject, object: RevisionObject): void {
  if (object.spec.tasks !== undefined && !sameValue(stored.spec.tasks ?? [], object.spec.tasks))
    context.warn?.('spec.tasks of an existing package revision cannot change and was ignored');
}

/** The fields that identify a revision. */
const IDENTITY = ['repository', 'packageName', 'workspaceName'] as const;

export function refuseOtherIdentity(stored: RevisionObject, object: RevisionObject): void {
  const causes = IDENTITY.filter((field) => object.spec[field] !== stored.spec[field]).map((field) =>
    invalidValue(['spec', field], object.spec[field], 'field is immutable'),
  );
  if (causes.length > 0) throw invalidObject(subjectOf(object), causes);
}

/** Returns the changes of a new object to its Kptfile, in addition to the content of its source. */
export function kptfileOf({ spec }: RevisionObject): KptfileEdit[] {
  const { labels = {}, annotations = {} } = spec.packageMetadata ?? {};
  return [
    ...(spec.readinessGates ?? []).map(({ conditionType }) => ({ op: 'addGate', conditionType }) as const),
    ...Object.entries(labels).map(([key, value]) => ({ op: 'setLabel', key, value }) as const),
    ...Object.entries(annotations).map(([key, value]) => ({ op: 'setAnnotation', key, value }) as const),
  ];
}

/** The step that a change of `spec.lifecycle` through the main resource requests. */
export function stepByUpdate(stored: RevisionObject, object: RevisionObject): Action | undefined {
  const before = stored.spec.lifecycle;
  const after = object.spec.lifecycle ?? before;
  if (before === after) return undefined;
  if (before === 'Draft' && after === 'Proposed') return 'propose';
  if (before === 'Proposed' && after === 'Draft') return 'reject';
  if (before === 'Published' && after === 'DeletionProposed') return 'propose-deletion';
  if (before === 'DeletionProposed' && after === 'Published') return 'undo-deletion';
  const published = before === 'Published' || before === 'DeletionProposed';
  const rule = published
    ? 'value can be only updated to Published,DeletionProposed'
    : 'value can be only updated to Draft,Proposed; publishing is done through the approval sub-resource';
  throw invalidRevision(object, ['spec', 'lifecycle'], after, rule);
}

/** The step that a write of the approval sub-resource requests. */
export function stepByApproval(before: Lifecycle | undefined, object: RevisionObject): Action | undefined {
  const after = object.spec.lifecycle;
  if (before === 'Draft') return 'approve';
  if (before === after) return undefined;
  if (before === 'Proposed' && after === 'Published') return 'approve';
  if (before === 'Proposed' && after === 'Draft') return 'reject';
  if (before === 'Published' && after === 'DeletionProposed') return 'propose-deletion';
  if (before === 'DeletionProposed' && after === 'Published') return 'undo-deletion';
  throw invalidRevision(object, ['spec', 'lifecycle'], after, `cannot change from ${before}`);
}

/** Returns the reason for publishing with closed gates; undefined if the request does not contain one. */
export function breakGlassOf({ metadata }: RevisionObject): string | undefined {
  const { annotations } = metadata;
  return annotations !== undefined && Object.hasOwn(annotations, BREAK_GLASS_ANNOTATION)
    ? annotations[BREAK_GLASS_ANNOTATION]
    : undefined;
}

/** The type of the condition that is affirmed; undefined if the request names none. */
export function affirmedTypeOf({ metadata }: RevisionObject): string | undefined {
  const { annotations } = metadata;
  return annotations !== undefined && Object.hasOwn(annotations, AFFIRM_ANNOTATION)
    ? annotations[AFFIRM_ANNOTATION]
    : undefined;
}

/** How the draft is to be based on the main branch; undefined if the request does not contain it. */
function rebaseOf(object: RevisionObject): RebaseMode | undefined {
  const { annotations } = object.metadata;
  if (annotations === undefined || !Object.hasOwn(annotations, REBASE_ANNOTATION)) return undefined;
  const value = annotations[REBASE_ANNOTATION];
  const mode = REBASE_MODES.find((one) => one === value);
  if (mode !== undefined) return mode;
  const path = ['metadata', 'annotations', REBASE_ANNOTATION];
  throw invalidRevision(object, path, value, `value can be only ${REBASE_MODES.join(' or ')}`);
}

/** Returns the other changes; undefined if there are none. */
export function changeOf(
  stored: RevisionObject,
  object: RevisionObject,
  revision: PackageRevision,
  approves: boolean,
): RevisionChange | undefined {
  const kptfile = kptfileEdits(stored, object);
  const metadata = metadataChange(stored, object, revision, approves);
  if (kptfile.length > 0 && revision.lifecycle !== 'Draft' && revision.lifecycle !== 'Proposed') {
    throw invalidRevision(
      object,
      ['spec'],
      '',
      `spec can only update package with lifecycle value one of Draft,Proposed; this one is ${revision.lifecycle}`,
    );
  }
  const rebase = rebaseOf(object);
  if (kptfile.length === 0 && metadata === undefined && rebase === undefined) return undefined;
  return { kptfile, ...(metadata === undefined ? {} : { metadata }), ...(rebase === undefined ? {} : { rebase }) };
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
  // Clients that were compiled before the field existed omit it, which means no change.
  const old = stored.spec.packageMetadata ?? {};
  const { labels = {}, annotations = {} } = object.spec.packageMetadata ?? old;
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

function metadataChange(
  stored: RevisionObject,
  object: RevisionObject,
  { namespace, record }: PackageRevision,
  approves: boolean,
): RevisionChange['metadata'] | undefined {
  const wanted = ownMetadata(object);
  if (sameValue(ownMetadata(stored), wanted)) return undefined;
  const ownerReferences = ownersWritten(namespace, record, wanted.ownerReferences);
  return { ...wanted, ownerReferences, byEditor: !approves };
}

/**
 * Returns whether the caller may approve. It may need a query, so it is decided before the stored object is read: no other writer can
 * then change the object between reading and validating it.
 */
export async function mayApprove(context: RequestContext): Promise<boolean> {
  return (await context.mayApprove?.()) !== false;
}

/**
 * The object as it is wanted, with the annotations that request an approval as they were unless the caller may approve: what a
 * controller approves because of them is approved by who set them.
 */
export function withApprovalRights<T extends RevisionObject>(
  context: RequestContext,
  stored: RevisionObject | undefined,
  object: T,
  approves: boolean,
): T {
  const before = stored?.metadata.annotations ?? {};
  const wanted = object.metadata.annotations ?? {};
  const changed = APPROVAL_ANNOTATIONS.filter((key) => before[key] !== wanted[key]);
  if (changed.length === 0 || approves) return object;
  context.warn?.(
    `${changed.join(' and ')} was left as it was, since ${context.actor.name} may not update packagerevisions/approval`,
  );
  const annotations = { ...wanted };
  for (const key of changed) {
    const old = before[key];
    if (old === undefined) delete annotations[key];
    else annotations[key] = old;
  }
  return { ...object, metadata: { ...object.metadata, annotations } };
}

/**
 * Targets select by labels, so the labels of a published revision affect clusters and only users who may publish can change them.
 * Porch lets every editor change them.
 */
export function refuseRelabelling(
  context: RequestContext,
  stored: RevisionObject,
  object: RevisionObject,
  approves: boolean,
): void {
  if (sameValue(ownMetadata(stored).labels, ownMetadata(object).labels)) return;
  if (!approves) refusePublished(context, stored, 'its labels select where it is delivered');
}

/** Porch lets every editor delete a revision that is proposed for deletion. Sluice requires the right to publish it. */
export function refuseDeletion(context: RequestContext, stored: RevisionObject, mayApprove: boolean): void {
  if (!mayApprove)
    refusePublished(context, stored, 'it is published, and its deletion takes it off the clusters that have it');
}

function refusePublished(context: RequestContext, { metadata, spec }: RevisionObject, why: string): void {
  if (spec.lifecycle !== 'Published' && spec.lifecycle !== 'DeletionProposed') return;
  throw new SluiceError(
    'Refused',
    `packagerevisions.porch.kpt.dev ${JSON.stringify(metadata.name)} is forbidden: ${why}; that needs the verb "update" on packagerevisions/approval, which User ${JSON.stringify(context.actor.name)} does not have; a user who may approve can do it`,
    { details: { name: metadata.name, group: 'porch.kpt.dev', kind: 'packagerevisions' } },
  );
}

/** Metadata without the fields that the server sets. */
export function ownMetadata(object: RevisionObject) {
  return {
    ...withoutManaged(object.metadata),
    ownerReferences: [...(object.metadata.ownerReferences ?? [])],
    finalizers: [...(object.metadata.finalizers ?? [])],
  };
}

/** Porch's clients expect this label to be the server's own. */
export function refuseManagedLabel(stored: RevisionObject | undefined, object: RevisionObject): void {
  const before = stored?.metadata.labels?.[LATEST_REVISION_LABEL];
  const after = object.metadata.labels?.[LATEST_REVISION_LABEL];
  if (after === undefined || after === before) return;
  const rule = `label is managed by the server and cannot be ${stored === undefined ? 'set' : 'modified'} by users`;
  throw invalidObject(subjectOf(object), [forbidden(['metadata', 'labels', LATEST_REVISION_LABEL], rule)]);
}

/** A client that waits for the end of a deletion must not have to wait for more. */
export function refuseLateFinalizer(stored: Stored<RevisionObject>, object: RevisionObject): void {
  if (stored.metadata.deletionTimestamp === undefined) return;
  const known = stored.metadata.finalizers ?? [];
  const added = (object.metadata.finalizers ?? []).filter((finalizer) => !known.includes(finalizer));
  if (added.length > 0) {
    const rule = 'no finalizer can be added while the object is being deleted';
    throw invalidRevision(object, ['metadata', 'finalizers'], added, rule);
  }
}

/** An error about one field of a package revision. */
export function invalidRevision(
  object: RevisionObject,
  path: readonly (string | number)[],
  value: unknown,
  message: string,
): SluiceError {
  return invalidObject(subjectOf(object), [invalidValue(path, value, message)]);
}

function subjectOf({ metadata }: RevisionObject): string {
  return `PackageRevision.porch.kpt.dev ${JSON.stringify(metadata.name)}`;
}
