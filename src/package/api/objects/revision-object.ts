import { conditionsOf, gatesOf } from '../../../../kptfile-schema/index.ts';
import { timestamp } from '../../../foundation/time/clock.ts';
import {
  LATEST_REVISION_LABEL,
  type PackageRevision as RevisionObject,
} from '../../../resource/kinds/porch/package-revision.ts';
import { publishedRecordOf } from '../../model/record/commit-message.ts';
import { ownersElsewhere, ownersShownIn } from '../../model/record/owners.ts';
import { approvalsIn } from '../../model/record/record.ts';
import { publisherOf } from '../../model/revision/attribution.ts';
import { creationTasks } from '../../model/revision/creation-tasks.ts';
import { isPlaceholder, isPublished, type PackageRevision } from '../../model/revision/package-revision.ts';
import type { PackageRepository } from '../../store/package-repository.ts';

/** The store puts it on revisions whose Kptfile cannot be read, with the reason. */
export const PROBLEM_ANNOTATION = 'sluice.dev/problem';
/** Annotation that the server sets: the owners of a revision in other namespaces, which no owner reference may name. */
const OWNERS_ANNOTATION = 'sluice.dev/owners-elsewhere';
/** On a write of the status: a condition type that counts as set again although it is unchanged. The annotation is not stored. */
export const AFFIRM_ANNOTATION = 'sluice.dev/affirm';
/** On an update: bases the draft on the main branch, see `RebaseMode`. The annotation is not stored. */
export const REBASE_ANNOTATION = 'sluice.dev/rebase';
/** In a request to the approval sub-resource: publish with closed gates, for this reason. It is never kept on the object. */
export const BREAK_GLASS_ANNOTATION = 'sluice.dev/break-glass';
/** Earlier versions put it on revisions; objects that a client kept may still carry it. It is in the status now. */
const EARLIER_OUT_OF_BAND_ANNOTATION = 'sluice.dev/out-of-band';

/** The Kubernetes object of a revision, as Porch shows it. */
export function revisionObject(
  revision: PackageRevision,
  repository: Pick<PackageRepository, 'namespace' | 'deployment' | 'url'>,
): RevisionObject {
  const { kptfile } = revision;
  const published = isPublished(revision);
  const packageMetadata = {
    ...(kptfile?.metadata?.labels === undefined ? {} : { labels: kptfile.metadata.labels }),
    ...(kptfile?.metadata?.annotations === undefined ? {} : { annotations: kptfile.metadata.annotations }),
  };
  const gates = kptfile === undefined ? [] : gatesOf(kptfile);
  const conditions = kptfile === undefined ? [] : [...conditionsOf(kptfile).values()];
  const tasks = creationTasks(revision);
  return {
    apiVersion: 'porch.kpt.dev/v1alpha1',
    kind: 'PackageRevision',
    metadata: {
      name: revision.name,
      namespace: repository.namespace,
      uid: revision.uid,
      creationTimestamp: createdAt(revision),
      ...objectMetadata(revision),
    },
    spec: {
      packageName: revision.key.package,
      repository: revision.key.repository,
      workspaceName: revision.key.workspace,
      ...(revision.revision === 0 ? {} : { revision: revision.revision }),
      lifecycle: revision.lifecycle,
      ...(tasks.length === 0 ? {} : { tasks: tasks as never }),
      ...(gates.length === 0 ? {} : { readinessGates: gates.map((conditionType) => ({ conditionType })) }),
      ...(Object.keys(packageMetadata).length === 0 ? {} : { packageMetadata }),
    },
    status: {
      ...(kptfile?.upstreamLock === undefined ? {} : { upstreamLock: kptfile.upstreamLock as never }),
      selfLock: {
        type: 'git',
        git: {
          repo: repository.url,
          directory: revision.path,
          ref: revision.ref.replace(/^refs\/(heads|tags)\//, ''),
          commit: revision.commit,
        },
      },
      // Porch takes the date of the author, which a rebase or a cherry-pick keeps.
      publishTimestamp: published ? timestamp(revision.tip.authorTime ?? revision.tip.time) : null,
      // The head of the main branch may be about another package.
      ...(published && !isPlaceholder(revision) ? { publishedBy: publisherOf(revision) } : {}),
      ...(repository.deployment ? { deployment: true } : {}),
      ...(conditions.length === 0 ? {} : { conditions }),
      ...peopleOf(revision),
      ...flawsOf(revision),
    },
  };
}

/** Returns why the publication or the record does not count. */
function flawsOf({
  outOfBand,
  recordDistrust,
}: PackageRevision): Pick<RevisionObject['status'] & {}, 'outOfBand' | 'recordDistrust'> {
  return {
    ...(outOfBand === undefined ? {} : { outOfBand: { reason: outOfBand.reason, message: outOfBand.message } }),
    ...(recordDistrust === undefined
      ? {}
      : { recordDistrust: { reason: recordDistrust.reason, message: recordDistrust.message } }),
  };
}

/** Returns the contributors and approvers of a pending revision from the record, which does not include later pushes. */
function peopleOf({
  lifecycle,
  namespace,
  record,
}: PackageRevision): Pick<RevisionObject['status'] & {}, 'contributors' | 'approvals'> {
  const { contributors = [], proposal } = record ?? {};
  const approvals = approvalsIn(record ?? {}, namespace);
  if (lifecycle !== 'Draft' && lifecycle !== 'Proposed') return {};
  const needed = proposal?.approvalsNeeded;
  return {
    ...(contributors.length === 0
      ? {}
      : { contributors: contributors.map(({ name, face, since }) => ({ name, face, since })) }),
    ...(lifecycle !== 'Proposed' || needed === undefined
      ? {}
      : { approvals: { needed, given: approvals.map(({ subject, face, at }) => ({ subject, face, at })) } }),
  };
}

/**
 * Returns the creation time of a revision, RFC 3339; for revisions that Sluice did not create, the time of the last
 * change.
 */
export function createdAt({ record, tip }: PackageRevision): string {
  return record?.createdAt ?? publishedRecordOf(tip.facts)?.createdAt ?? timestamp(tip.time);
}

/**
 * Labels and annotations without those that only the server sets, and those that are requests: in a record, whichever way they got there, they
 * would be sent back by the next writer of the object.
 */
export function withoutManaged(metadata: {
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
}) {
  const { [LATEST_REVISION_LABEL]: _latest, ...labels } = metadata.labels ?? {};
  const {
    [EARLIER_OUT_OF_BAND_ANNOTATION]: _flag,
    [PROBLEM_ANNOTATION]: _problem,
    [OWNERS_ANNOTATION]: _owners,
    [BREAK_GLASS_ANNOTATION]: _breakGlass,
    [AFFIRM_ANNOTATION]: _affirm,
    [REBASE_ANNOTATION]: _rebase,
    ...annotations
  } = metadata.annotations ?? {};
  return { labels, annotations };
}

function objectMetadata(revision: PackageRevision) {
  const { record, namespace } = revision;
  const { finalizers = [] } = record ?? {};
  const ownerReferences = ownersShownIn(namespace, record);
  const elsewhere = ownersElsewhere(namespace, record);
  const own = withoutManaged(record ?? {});
  const labels = { ...own.labels, ...(revision.latest ? { [LATEST_REVISION_LABEL]: 'true' } : {}) };
  const { unread } = revision.tip.facts;
  const problem = revision.problem ?? (unread && `the message of the commit was not read: ${unread}`);
  const annotations = {
    ...own.annotations,
    ...(problem === undefined ? {} : { [PROBLEM_ANNOTATION]: problem }),
    ...(elsewhere.length === 0 ? {} : { [OWNERS_ANNOTATION]: elsewhere.join(', ') }),
  };
  return {
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
    ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    ...(ownerReferences.length === 0 ? {} : { ownerReferences }),
    ...(finalizers.length === 0 ? {} : { finalizers }),
    ...(record?.deletionTimestamp === undefined ? {} : { deletionTimestamp: record.deletionTimestamp }),
  };
}
