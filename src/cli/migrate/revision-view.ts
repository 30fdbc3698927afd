import { LATEST_REVISION_LABEL, type PackageRevision } from '../../resource/kinds/porch/package-revision.ts';
import type { OwnerReference, Stored } from '../../resource/object/object.ts';

type Texts = Readonly<Record<string, string>>;

/** A package revision as a server shows it, reduced to what Porch and Sluice must show alike. */
export interface RevisionView {
  readonly name: string;
  readonly uid: string;
  readonly packageName: string;
  readonly workspaceName: string;
  /** 0 for drafts. */
  readonly revision: number;
  readonly lifecycle: string;
  readonly isLatest: boolean;
  /** Metadata of users, which Porch keeps in its cluster or its database, not in Git. */
  readonly labels: Texts;
  readonly annotations: Texts;
  readonly owners: readonly OwnerReference[];
}

/** Metadata that a server sets, or that describes how an object was written. */
const OWN_PREFIXES = ['sluice.dev/', 'internal.porch.kpt.dev/', 'kubectl.kubernetes.io/'];

export function revisionView({ metadata, spec }: Stored<PackageRevision>): RevisionView {
  const { labels = {}, annotations = {}, ownerReferences = [] } = metadata;
  return {
    ...{ name: metadata.name, uid: metadata.uid },
    ...{ packageName: spec.packageName, workspaceName: spec.workspaceName },
    revision: numberOf(spec.revision),
    lifecycle: spec.lifecycle ?? 'Draft',
    isLatest: labels[LATEST_REVISION_LABEL] === 'true',
    labels: ofUsers(labels),
    annotations: ofUsers(annotations),
    owners: ownerReferences,
  };
}

/** Porch before 1.4 writes `v3` for the revision 3. */
function numberOf(revision: number | string | undefined): number {
  const number = Number(String(revision ?? 0).replace(/^v(?=\d)/, ''));
  return Number.isNaN(number) ? 0 : number;
}

function ofUsers(texts: Texts): Texts {
  const isOfUser = (key: string) =>
    key !== LATEST_REVISION_LABEL && !OWN_PREFIXES.some((prefix) => key.startsWith(prefix));
  return Object.fromEntries(Object.entries(texts).filter(([key]) => isOfUser(key)));
}
