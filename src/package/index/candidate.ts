import { conditionsOf, gatesOf } from '../../../kptfile-schema/index.ts';
import type { Oid } from '../../git/git-repository.ts';
import { parseCommitMessage } from '../commit-message.ts';
import { isRevisionKey, type RevisionKey, revisionName, revisionUid } from '../identity.ts';
import { judgePublication } from '../kernel/publication.ts';
import type { Lifecycle } from '../kernel/types.ts';
import { mainRef, packagePath, type RefMeaning, type RepositoryLayout } from '../layout.ts';
import { type CommitInfo, isPlaceholder, type PackageRevision } from '../package-revision.ts';
import type { FolderFact } from './fact-cache.ts';
import { KptfileFact } from './kptfile-fact.ts';

/** A revision as the ref that shows it says; its record and what depends on other revisions of the package come on top. */
export interface Candidate
  extends Omit<PackageRevision, 'latest' | 'etag' | 'record' | 'recordOid' | 'hides' | 'kptfile' | 'problem'> {
  readonly fact: KptfileFact;
}

export type RevisionRef = Extract<RefMeaning, { kind: 'draft' | 'proposed' | 'published' }>;

/** Where candidates come from. */
export interface Origin {
  readonly repository: string;
  readonly namespace: string;
  readonly layout: RepositoryLayout;
}

const LIFECYCLE_OF = { draft: 'Draft', proposed: 'Proposed', published: 'Published' } as const;
const NO_FACTS = parseCommitMessage('');

/** What a branch or tag shows; undefined for a tag on a commit without this package, of which many repositories have some. */
export function refCandidate(
  origin: Origin,
  { ref, oid, meaning }: { readonly ref: string; readonly oid: Oid; readonly meaning: RevisionRef },
  info: CommitInfo,
  kptfileOf: (blob: Oid) => KptfileFact | undefined,
): Candidate | undefined {
  if (meaning.kind === 'published' && info.kptfileBlob === undefined) return undefined;
  const path = packagePath(origin.layout, meaning.package);
  const workspace =
    meaning.kind === 'published' ? workspaceOf(meaning.version, path, info.facts.annotations) : meaning.workspace;
  const candidate = {
    ...identify(origin, meaning.package, workspace),
    lifecycle: LIFECYCLE_OF[meaning.kind],
    revision: meaning.kind === 'published' ? meaning.revision : 0,
    ...{ ref, refOid: oid, commit: info.oid, path, tip: info },
    fact: info.kptfileBlob === undefined ? KptfileFact.NONE : (kptfileOf(info.kptfileBlob) ?? KptfileFact.LOST),
    outOfBand: undefined,
  };
  return meaning.kind === 'published' ? { ...candidate, outOfBand: judgeTag(candidate, meaning.version) } : candidate;
}

/** A package on the main branch, whose head is `info`. */
export function placeholderCandidate(
  origin: Origin,
  folder: FolderFact,
  info: CommitInfo,
  fact: KptfileFact | undefined,
): Candidate {
  return {
    ...identify(origin, folder.path, origin.layout.branch),
    lifecycle: 'Published',
    revision: -1,
    ref: mainRef(origin.layout),
    refOid: info.oid,
    commit: info.oid,
    path: packagePath(origin.layout, folder.path),
    fact: fact ?? KptfileFact.LOST,
    // What the head commit says is about the package that was published last, which may be another one.
    tip: { ...info, facts: NO_FACTS, kptfileBlob: folder.kptfileBlob, tree: folder.tree },
    outOfBand: undefined,
  };
}

function identify(origin: Origin, packageName: string, workspace: string): Pick<Candidate, 'key' | 'name' | 'uid'> {
  const key: RevisionKey = { repository: origin.repository, package: packageName, workspace };
  const name = revisionName(key);
  return { key, name, uid: revisionUid(name, origin.namespace) };
}

/** Why a tag did not come through the kernel; undefined if it did. */
function judgeTag(candidate: Candidate, version: string): Candidate['outOfBand'] {
  const { fact, path, tip } = candidate;
  const judgement = judgePublication({
    parents: tip.parents.length,
    commit: tip.facts,
    subject: tip.subject,
    path,
    version,
    // Only an approval with a record is judged by them.
    get gates() {
      return fact.kptfile === undefined ? [] : gatesOf(fact.kptfile);
    },
    get conditions() {
      return fact.kptfile === undefined ? new Map() : conditionsOf(fact.kptfile);
    },
  });
  return judgement.inBand ? undefined : { reason: judgement.reason, message: judgement.message };
}

/** The main branch should hold what was published last. `newest` is the highest revision of the package. */
export function judgePlaceholder(placeholder: Candidate, newest: Candidate | undefined): Candidate['outOfBand'] {
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

/**
 * Which of those that claim one id is shown. One whose name Sluice could have given goes first: names of others can be spelled
 * in two ways. Then what is further on counts, as for a draft branch that is pushed anew after publication.
 */
export function winner(claimants: readonly Candidate[]): Candidate | undefined {
  if (claimants.length < 2) return claimants[0];
  return [...claimants].sort((a, b) => rank(b) - rank(a) || b.revision - a.revision || (a.ref < b.ref ? -1 : 1))[0];
}

function rank(candidate: Candidate): number {
  const order: readonly Lifecycle[] = ['Draft', 'Proposed', 'Published'];
  const further = isPlaceholder(candidate) ? 0 : 1 + order.indexOf(candidate.lifecycle);
  return (isRevisionKey(candidate.key) ? 10 : 0) + further;
}

/** The workspace a tag was published from stands in its approval commit; a tag made by hand is its own workspace. */
function workspaceOf(
  version: string,
  path: string,
  annotations: readonly { package: string; workspaceName: string; revision?: string }[],
): string {
  const number = version.replace(/^v/, '');
  const own = annotations.find(({ package: of, revision }) => of === path && revision?.replace(/^v/, '') === number);
  return own === undefined || own.workspaceName === '' ? version : own.workspaceName;
}
