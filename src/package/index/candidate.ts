import { conditionsOf, gatesOf } from '../../../kptfile-schema/index.ts';
import { judgePublication } from '../kernel/publication.ts';
import type { Lifecycle } from '../kernel/types.ts';
import type { PackageRevision } from '../package-revision.ts';

/** A revision as the ref that shows it says; its record and what depends on other revisions of the package come on top. */
export type Candidate = Omit<PackageRevision, 'latest' | 'etag' | 'outOfBand' | 'record' | 'recordOid'>;

/** Why a published revision did not come through the kernel; undefined if it did. `newest` is the highest one of its package. */
export function judgeCandidate(candidate: Candidate, newest: Candidate | undefined): PackageRevision['outOfBand'] {
  if (candidate.ref.startsWith('refs/heads/')) return judgeMain(candidate, newest);
  const kptfile = candidate.kptfile;
  const judgement = judgePublication({
    parents: candidate.tip.parents.length,
    commit: candidate.tip.facts,
    subject: candidate.tip.subject,
    path: candidate.path,
    version: candidate.ref.slice(candidate.ref.lastIndexOf('/') + 1),
    gates: kptfile === undefined ? [] : gatesOf(kptfile),
    conditions: kptfile === undefined ? new Map() : conditionsOf(kptfile),
  });
  return judgement.inBand ? undefined : { reason: judgement.reason, message: judgement.message };
}

/** The main branch should hold what was published last. */
function judgeMain(placeholder: Candidate, newest: Candidate | undefined): PackageRevision['outOfBand'] {
  if (newest === undefined) {
    return {
      reason: 'NotPublished',
      message: 'the package is on the main branch, but no revision of it was published',
    };
  }
  if (newest.tip.tree === placeholder.tip.tree) return undefined;
  return {
    reason: 'MainDiffers',
    message: `the main branch holds another content than ${newest.name} (v${newest.revision})`,
  };
}

/** Two refs can claim one name, for example a draft branch pushed anew after publication: what is further on counts. */
export function precedes(a: Candidate, b: Candidate): boolean {
  const order: readonly Lifecycle[] = ['Draft', 'Proposed', 'Published'];
  return (
    order.indexOf(a.lifecycle) > order.indexOf(b.lifecycle) || (a.lifecycle === b.lifecycle && a.revision > b.revision)
  );
}

/** The workspace a tag was published from stands in its commit; a tag made by hand is its own workspace. */
export function workspaceOf(
  meaning: { readonly version: string },
  path: string,
  annotations: readonly { package: string; workspaceName: string; revision?: string }[],
): string {
  const number = meaning.version.replace(/^v/, '');
  const own = annotations.find(
    (annotation) => annotation.package === path && (annotation.revision ?? number).replace(/^v/, '') === number,
  );
  return own === undefined || own.workspaceName === '' ? meaning.version : own.workspaceName;
}
/** `a/b/c` lies in `a` and `a/b`. */
export function foldersAbove(packageName: string): string[] {
  const folders: string[] = [];
  for (let slash = packageName.indexOf('/'); slash !== -1; slash = packageName.indexOf('/', slash + 1)) {
    folders.push(packageName.slice(0, slash));
  }
  return folders;
}
