import { conditionsOf, type RenderStatus } from '../../kptfile-schema/index.ts';
import { describeForeign } from '../../src/package/kernel/foreign-files.ts';
import type { PackageContent } from '../../src/package/model/content/content.ts';
import { bindInputs } from '../../src/package/model/content/inputs.ts';
import { type IssuedCondition, plainCondition } from '../../src/package/model/gates/verdict.ts';
import { verdictOf } from '../../src/package/model/record/record.ts';
import { isPlaceholder, isPublished, type PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { RevisionChange } from '../../src/package/plan/edit/change.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { NewRevision, RevisionSource } from '../../src/package/upstream/revision-source.ts';
import { readPackageFiles } from '../../src/package/upstream/upstream-reader.ts';
import type { PackageVariant } from '../../src/resource/kinds/porch/package-variant.ts';
import type { Stored } from '../../src/resource/object/object.ts';
import type { RequestContext } from '../../src/resource/object/request-context.ts';
import { sameValue } from '../../src/resource/object/same-value.ts';
import { adaptPackage, changesContent } from './adapt-package.ts';
import type { ReadSelected } from './injection.ts';
import {
  type Base,
  baseOf,
  isBasedOn,
  type MergedUpstream,
  mergeUpstream,
  type UpstreamStore,
  withEdits,
} from './merge-upstream.ts';
import { isFormer, latestPublished, nextWorkspace, ownerOf, ownersOf, planDownstream } from './plan-variant.ts';

/** Why a variant cannot do anything about its downstream package until something else changes. */
export class Blocked extends Error {
  override readonly name = 'Blocked';
}

/** Why a variant must not open a draft yet, and the milliseconds until it may, if that depends on time alone. */
export class Waiting extends Error {
  override readonly name = 'Waiting';
  readonly retryMs: number | undefined;

  constructor(message: string, retryMs?: number) {
    super(message);
    this.retryMs = retryMs;
  }
}

export interface Downstream {
  readonly store: UpstreamStore & Pick<RevisionStore, 'create' | 'change' | 'evaluate' | 'get'>;
  readonly variant: Stored<PackageVariant>;
  readonly upstream: PackageRevision;
  readonly upstreamRepository: PackageRepository;
  readonly repository: PackageRepository;
  readonly read: ReadSelected;
  /** Makes room for a new draft, or rejects with Waiting. */
  readonly requestDraft: () => Promise<void>;
  /** Called with what the functions did in a commit. */
  readonly onRendered: (status: RenderStatus) => void;
  readonly context: RequestContext;
}

/** The revision that the variant keeps up to date, and what was done. */
export interface Ensured {
  readonly revision: PackageRevision;
  /** It was created now; an earlier one may have had its name. */
  readonly isNew?: true;
  /** The event of a change; undefined if nothing changed. */
  readonly done?: { readonly reason: string; readonly message: string };
  /** What waits for a decision of users. */
  readonly waits?: string;
  /** Why the approval of the revision would undo a later publication. */
  readonly overtaken?: string;
}

/** Brings the downstream package up to date with at most one commit. Throws Blocked where users have to act first, and Waiting. */
export async function ensureDownstream(downstream: Downstream): Promise<Ensured> {
  const { store, variant, repository, context } = downstream;
  const read = () => store.list({ repository: repository.id, package: variant.spec.downstream.package });
  const revisions = read();
  const plan = planDownstream(variant, revisions);
  if (plan.step === 'none') throw new Blocked(plan.problem);
  if (plan.step === 'clone') return clone(downstream, nextWorkspace(revisions));
  const ensured = await { keep, renew }[plan.step](downstream, plan.revision, nextWorkspace(revisions));
  // What it cannot keep up to date stays with its owner: it would be deleted together with a variant that never worked.
  if (plan.adopt.length === 0) return ensured;
  // Another one may have taken it meanwhile.
  const after = planDownstream(variant, read());
  if (after.step === 'none') throw new Blocked(after.problem);
  for (const revision of after.step === 'clone' ? [] : after.adopt) {
    const metadata = metadataFor(variant, revision);
    if (metadata !== undefined) await store.change(idOf(revision), { metadata }, context);
  }
  return ensured;
}

async function clone(downstream: Downstream, workspace: string): Promise<Ensured> {
  const { upstream } = downstream;
  const source = { type: 'clone', upstream: { revision: upstream.name, followsBranch: true } } as const;
  const revision = await create(downstream, workspace, source);
  return {
    revision,
    isNew: true,
    done: { reason: 'Cloned', message: `created ${revision.name} from ${describe(upstream)}` },
  };
}

/** Brings an open revision up to date with upstream and the variant. What users changed in it stays. */
async function keep(downstream: Downstream, revision: PackageRevision): Promise<Ensured> {
  const { store, variant, upstream, upstreamRepository, repository, read, context } = downstream;
  const overtaken = await rebase(downstream, revision);
  if (overtaken !== undefined) return overtaken;
  const base = baseOf(store, revision, upstreamRepository);
  const isCurrent = await isBasedOn(base, upstream, upstreamRepository);
  const content = await repository.content(revision);
  const merge = isCurrent ? undefined : await mergeInto(downstream, base, revision);
  const merged = merge?.files ?? NOTHING;
  const { files, kptfile, conditions } = await adaptPackage(variant, withEdits(content.files, merged), read);
  const changes = { files: new Map([...merged, ...files]), kptfile };
  if (revision.lifecycle === 'Proposed' && changesContent(changes)) {
    const what = isCurrent ? 'the changes of this variant' : describe(upstream);
    return { revision, waits: `${what} follows when ${revision.name}, which is Proposed, is approved or rejected` };
  }
  const metadata = metadataFor(variant, revision);
  const open = conditions.filter((given) => !isIssued(given, revision, content));
  if (!changesContent(changes) && open.length === 0 && metadata === undefined) return { revision };
  const change: RevisionChange = {
    ...(changesContent(changes) ? changes : {}),
    conditions: changesContent(changes) ? conditions : open,
    ...(metadata === undefined ? {} : { metadata }),
    subject: isCurrent ? `Adapting to package variant ${variant.metadata.name}` : 'Upgrading revision',
    expectedCommit: revision.commit,
    ...(merge === undefined ? {} : { overwritten: merge }),
    onRendered: downstream.onRendered,
  };
  const after = await store.change(idOf(revision), change, context);
  if (after.commit === revision.commit) return { revision: after };
  const message = isCurrent ? `adapted ${after.name}` : `upgraded ${after.name} to ${describe(upstream)}`;
  const done = { reason: isCurrent ? 'Adapted' : 'Upgraded', message };
  return { revision: after, done };
}

/** Merges what users published of the package since the revision was made: its approval would undo that. Undefined if there is nothing. */
async function rebase(
  { store, repository, context }: Downstream,
  revision: PackageRevision,
): Promise<Ensured | undefined> {
  const { package: path } = revision.key;
  const latest = latestPublished(store.list({ repository: repository.id, package: path }));
  if (latest === undefined || latest.tip.tree === revision.record?.base?.tree) return undefined;
  const { overtaken } = await store.evaluate(idOf(revision));
  if (overtaken?.later === undefined) return undefined;
  const { message, later } = overtaken;
  const published = `${later.name}, which was published as v${later.revision} after ${revision.name} was made,`;
  if (revision.lifecycle === 'Proposed') {
    const waits = `${published} follows when ${revision.name}, which is Proposed, is rejected`;
    return { revision, waits, overtaken: message };
  }
  const change: RevisionChange = {
    ...{ rebase: 'publication', subject: `Merging v${later.revision}`, expectedCommit: revision.commit },
  };
  const main = repository.index.mainHead;
  const { commit, record, path: folder } = revision;
  const branch = { commit, paths: [folder], base: record?.base?.commit };
  const foreign = main && (await repository.foreign.ofHead(branch, main));
  const after = await store.change(idOf(revision), change, context);
  const lost = foreign
    ? `; its branch has the package alone now, and ${commit} has ${describeForeign({ foreign })}`
    : '';
  return { revision: after, done: { reason: 'Rebased', message: `merged ${published} into it${lost}` } };
}

/** Opens a draft from a published revision if upstream or the variant changed. */
async function renew(downstream: Downstream, revision: PackageRevision, workspace: string): Promise<Ensured> {
  const { store, variant, upstream, upstreamRepository, repository, read } = downstream;
  const base = baseOf(store, revision, upstreamRepository);
  if (await isBasedOn(base, upstream, upstreamRepository)) {
    const { files } = await repository.content(revision);
    if (!changesContent(await adaptPackage(variant, files, read))) return { revision };
    const copy = { type: 'copy', source: revision.name } as const;
    // Where functions undo a change in every rendering, there is none.
    const foreseen = await create(downstream, workspace, copy, undefined, true);
    if (foreseen.tip.tree === revision.tip.tree) return { revision };
    const made = await create(downstream, workspace, copy);
    const message = `created ${made.name} from ${revision.name}, since this variant or an object that it injects changed`;
    return { revision: made, isNew: true, done: { reason: 'Adapted', message } };
  }
  // An upgrade is between published revisions; a branch is followed by a copy with the same merge.
  const isUpgrade = base.revision !== undefined && !isPlaceholder(upstream);
  const messageOf = ({ name }: PackageRevision) => `created ${name} from ${revision.name} and ${describe(upstream)}`;
  if (isUpgrade) {
    const versions = { oldUpstream: base.revision.name, newUpstream: upstream.name, local: revision.name };
    const made = await create(downstream, workspace, { type: 'upgrade', ...versions });
    return { revision: made, isNew: true, done: { reason: 'Upgraded', message: messageOf(made) } };
  }
  const merge = await mergeInto(downstream, base, revision);
  const made = await create(downstream, workspace, { type: 'copy', source: revision.name }, merge);
  return { revision: made, isNew: true, done: { reason: 'Upgraded', message: messageOf(made) } };
}

const NOTHING: ReadonlyMap<string, Uint8Array | null> = new Map();

/** Creates a draft: the changes of upstream, if the source does not bring them, and those of the variant are in its first commit. */
async function create(
  { store, variant, repository, read, requestDraft, onRendered, context }: Downstream,
  workspace: string,
  source: RevisionSource,
  merge?: MergedUpstream,
  dryRun = false,
): Promise<PackageRevision> {
  const { labels, annotations, downstream } = variant.spec;
  const from = source.type === 'copy' ? source.source : source.type === 'upgrade' ? source.local : undefined;
  const wanted: NewRevision = {
    package: downstream.package,
    workspace,
    source,
    // What a user publishes meanwhile would be missing in the draft.
    ...(from === undefined ? {} : { expectedLatest: from }),
    metadata: {
      ownerReferences: [{ ...ownerOf(variant) }],
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
    },
    ...(merge === undefined ? {} : { overwritten: merge }),
    adapt: async (files) => {
      const merged = merge?.files ?? NOTHING;
      const adaptation = await adaptPackage(variant, withEdits(files, merged), read);
      return { ...adaptation, files: new Map([...merged, ...adaptation.files]) };
    },
  };
  if (dryRun) return store.create(repository.id, wanted, { ...context, dryRun });
  await requestDraft();
  return store.create(repository.id, { ...wanted, onRendered }, context);
}

async function mergeInto(
  { upstream, upstreamRepository, repository }: Downstream,
  base: Base,
  revision: PackageRevision,
): Promise<MergedUpstream> {
  const local = await readPackageFiles(repository.git, revision.tip.tree ?? `${revision.commit}:${revision.path}`);
  const { deployment } = repository;
  return mergeUpstream(local, base, upstream, { upstreamRepository, deployment }, revision);
}

/**
 * The metadata of a revision with what the variant wants; undefined if it has that. Labels of publications, by which targets select, are for
 * users who may approve.
 */
function metadataFor(variant: Stored<PackageVariant>, revision: PackageRevision): RevisionChange['metadata'] {
  const { labels = {}, annotations = {}, ownerReferences = [] } = revision.record ?? {};
  const own = ownerOf(variant);
  // Earlier versions recorded no namespace.
  const hasOwn = ownersOf(revision).some(({ uid, namespace }) => uid === own.uid && namespace !== undefined);
  const kept = ownersOf(revision).filter((owner) => owner.uid !== own.uid && !isFormer(variant, owner));
  const owners = hasOwn ? ownerReferences : [...kept.map((owner) => ({ ...owner })), { ...own }];
  const wanted: Pick<PackageVariant['spec'], 'labels' | 'annotations'> = isPublished(revision) ? {} : variant.spec;
  const before = { labels, annotations, ownerReferences };
  const after = {
    labels: { ...labels, ...wanted.labels },
    annotations: { ...annotations, ...wanted.annotations },
    ownerReferences: owners,
  };
  return sameValue(before, after) ? undefined : after;
}

/** True if a condition is in the Kptfile, and its verdict is for the present inputs. */
function isIssued(given: IssuedCondition, { kptfile, record }: PackageRevision, content: PackageContent): boolean {
  const written = kptfile === undefined ? undefined : conditionsOf(kptfile).get(given.type);
  const verdict = verdictOf(record, given.type);
  if (written === undefined || verdict === undefined) return false;
  const { type, status, reason, message } = plainCondition(given);
  const isSame = (other: { status: string; reason?: string | undefined; message?: string | undefined }) =>
    other.status === status && other.reason === reason && other.message === message;
  return (
    type === verdict.type &&
    isSame(written) &&
    isSame(verdict) &&
    sameValue(verdict.inputs, bindInputs(given.inputs ?? [], content))
  );
}

function describe({ key, revision, ref }: PackageRevision): string {
  const version = revision > 0 ? `v${revision}` : ref.replace(/^refs\/(?:heads|tags)\//, '');
  return `${key.repository}/${key.package} ${version}`;
}

function idOf({ namespace, name }: PackageRevision): string {
  return `${namespace}/${name}`;
}
