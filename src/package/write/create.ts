import { conditionsOf, newKptfile, readKptfile } from '../../../kptfile-schema/index.ts';
import { timestamp } from '../../foundation/clock.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { RefUpdate, TreeEdit } from '../../git/git-repository.ts';
import type { RequestContext } from '../../resource/request-context.ts';
import { formatCommitMessage } from '../commit-message.ts';
import { readPackage } from '../content.ts';
import { checkRevisionKey, type RevisionKey, revisionName, revisionUid } from '../identity.ts';
import { deletionProposedRef, draftRef, mainRef, packagePath, proposedRef, recordRef, tagRef } from '../layout.ts';
import { isPlaceholder, isPublished, type PackageRevision } from '../package-revision.ts';
import { emptyRecord, type RevisionRecord, type Verdict } from '../record.ts';
import { currentRecord } from '../record-at-tip.ts';
import { syncVerdicts } from '../verdict.ts';
import type { RevisionSource } from './revision-source.ts';
import { giveRendered, renderNew } from './trivial-render.ts';
import { signatures, type Workbench, type WritePlan, writeRecord } from './workbench.ts';

export interface NewRevision {
  readonly package: string;
  readonly workspace: string;
  readonly source: RevisionSource;
  /** Object metadata to begin with; it lives in the record. */
  readonly metadata?: Partial<Pick<RevisionRecord, 'labels' | 'annotations' | 'ownerReferences' | 'finalizers'>>;
}

/** Plans a new draft: a branch from the main head with one commit, and its record. */
export async function planCreate(bench: Workbench, wanted: NewRevision, context: RequestContext): Promise<WritePlan> {
  const key = checkPlace(bench, wanted);
  const head = bench.index.mainHead;
  if (head === undefined) {
    throw new SluiceError(
      'InvalidInput',
      `${mainRef(bench.layout)} does not exist in repository ${bench.repository}; push a first commit or set spec.git.createBranch`,
    );
  }
  const name = revisionName(key);
  const uid = revisionUid(name, bench.namespace);
  const start = await startOf(bench, key, wanted.source);
  const mainCommit = await bench.git.readCommit(head);
  const path = packagePath(bench.layout, key.package);
  const made = await bench.git.editTree(mainCommit.tree, start.edits);
  const at = timestamp(bench.clock.now());
  const verdicts = start.verdicts ?? (await givenIn(bench, `${made}:${path}`, context, at));
  const rendered = await renderNew(bench.git, made, path);
  const commit = await bench.git.writeCommit({
    tree: rendered.root,
    parents: [head],
    ...signatures(bench, context),
    message: formatCommitMessage(start.subject, {
      annotation: { package: path, workspaceName: key.workspace, task: start.task },
      context,
      action: wanted.source.type,
    }),
  });
  const begun: RevisionRecord = {
    ...emptyRecord(commit),
    verdicts: [...verdicts],
    ...(start.source === undefined ? {} : { source: start.source }),
    createdAt: at,
    task: start.task,
    ...wanted.metadata,
  };
  const record = rendered.inputs === undefined ? begun : giveRendered(begun, rendered.inputs, at);
  const before = bench.index.ref(recordRef(bench.layout, uid));
  const note = { subject: `${start.subject} (${name})`, action: wanted.source.type, made: commit };
  const updates: RefUpdate[] = [
    { type: 'create', ref: draftRef(bench.layout, key), new: commit },
    // A workspace can be used again after deletion; what an old record said must not speak for the new draft.
    await writeRecord(bench, { uid, recordOid: before }, record, note, context),
  ];
  return { updates, name };
}

/** The key of a new revision. Throws if there is no place for it. */
export function checkPlace(bench: Workbench, wanted: NewRevision): RevisionKey {
  const key = { repository: bench.repository, package: wanted.package, workspace: wanted.workspace };
  checkRevisionKey(key);
  checkUnique(bench, key);
  if (wanted.source.type === 'init' && bench.index.ofPackage(key.package).length > 0) {
    throw new SluiceError(
      'AlreadyExists',
      `package "${key.package}" already exists in repository "${bench.repository}"`,
    );
  }
  checkNesting(bench, key);
  checkRefCollision(bench, key);
  return key;
}

interface Start {
  readonly subject: string;
  readonly task: unknown;
  readonly edits: ReadonlyMap<string, TreeEdit>;
  /** Those that come along; undefined if the conditions in the files count as given by whoever makes the draft. */
  readonly verdicts?: readonly Verdict[];
  readonly source?: NonNullable<RevisionRecord['source']>;
}

function startOf(bench: Workbench, key: RevisionKey, source: RevisionSource): Start | Promise<Start> {
  switch (source.type) {
    case 'init':
      return initial(bench, key, source);
    case 'copy':
      return copied(bench, key, source);
    case 'clone':
    case 'upgrade':
      throw new SluiceError('Unsupported', `a package revision cannot be made by ${source.type} yet`);
  }
}

/** The verdicts of whoever brings a package with conditions in its Kptfile. */
async function givenIn(
  bench: Workbench,
  specification: string,
  context: RequestContext,
  at: string,
): Promise<readonly Verdict[]> {
  const [blob] = await bench.git.readObjects([`${specification}/Kptfile`]);
  const result = blob === undefined ? undefined : readKptfile(blob.data);
  const conditions = result?.ok === true ? conditionsOf(result.kptfile) : new Map();
  if (result?.ok !== true || conditions.size === 0) return [];
  const content = await readPackage(bench.git, specification, result.kptfile);
  return syncVerdicts(emptyRecord(''), { conditions }, content, context, at).verdicts;
}

function initial(bench: Workbench, key: RevisionKey, source: Extract<RevisionSource, { type: 'init' }>): Start {
  const path = packagePath(bench.layout, key.package);
  const ownName = key.package.slice(key.package.lastIndexOf('/') + 1);
  const description = source.description ?? `${ownName} description`;
  const files = new Map<string, Uint8Array>([
    ['Kptfile', Buffer.from(newKptfile({ name: ownName, description, ...pick(source) }))],
    ['README.md', Buffer.from(`# ${ownName}\n\n${description}\n`)],
    ['package-context.yaml', Buffer.from(packageContext(bench.deployment ? ownName : 'example'))],
    ...(source.files ?? []),
  ]);
  return {
    subject: 'Creating new empty revision',
    task: { type: 'init', init: { description, ...pick(source) } },
    edits: new Map([...files].map(([file, data]) => [`${path}/${file}`, { data }])),
  };
}

async function copied(
  bench: Workbench,
  key: RevisionKey,
  request: Extract<RevisionSource, { type: 'copy' }>,
): Promise<Start> {
  const source = bench.index.get(request.source);
  if (source === undefined) throw new SluiceError('NotFound', `package revision "${request.source}" not found`);
  checkCopySource(source, key);
  const content = await bench.content(source);
  const path = packagePath(bench.layout, key.package);
  return {
    subject: 'Creating new revision by copying previous revision',
    task: { type: 'edit', edit: { sourceRef: { name: source.name } } },
    edits: new Map([[path, { oid: content.tree, mode: '040000' }]]),
    // Verdicts come along and hold for as long as their inputs stay as they are.
    verdicts: (await currentRecord(bench, source, content)).verdicts,
    source: { kind: 'copy', name: source.name, commit: source.commit, content: content.content },
  };
}

function checkCopySource(source: PackageRevision, key: RevisionKey): void {
  if (source.key.repository !== key.repository || source.key.package !== key.package) {
    throw new SluiceError(
      'InvalidInput',
      `source revision must be from same package ${key.repository}/${key.package} (got: ${source.key.repository}/${source.key.package})`,
    );
  }
  if (!isPublished(source)) {
    throw new SluiceError('Refused', `source revision must be published: ${source.name} is ${source.lifecycle}`);
  }
  if (isPlaceholder(source)) {
    throw new SluiceError(
      'Refused',
      `source revision must not be the placeholder package revision ${source.name}; copy the latest published revision`,
    );
  }
}

function checkUnique(bench: Workbench, key: RevisionKey): void {
  if (key.workspace === bench.layout.branch) {
    throw new SluiceError(
      'InvalidInput',
      `workspace name "${key.workspace}" belongs to the packages on the branch ${bench.layout.branch}; choose another one`,
    );
  }
  const taken = bench.index.ofPackage(key.package).find((other) => other.key.workspace === key.workspace);
  if (taken !== undefined) {
    throw new SluiceError(
      'AlreadyExists',
      `package revision workspaceNames must be unique; package revision with name ${key.package} in repo ${key.repository} with workspaceName ${key.workspace} already exists`,
    );
  }
}

/** Git keeps refs as files: `drafts/a/b` and `drafts/a/b/c` cannot both exist, which is the same as packages that are nested. */
function checkNesting(bench: Workbench, key: RevisionKey): void {
  const other = bench.index.nestedWith(key.package);
  if (other === undefined) return;
  throw new SluiceError(
    'Refused',
    `packages cannot be nested: "${key.package}" would lie above or below the package "${other}", and their branches and tags cannot exist side by side in Git; choose another package name`,
  );
}

/** Branches and tags that are no revisions can be in the way too, also of what the draft becomes later. */
function checkRefCollision(bench: Workbench, key: RevisionKey): void {
  const { layout, index } = bench;
  const refs = [draftRef(layout, key), proposedRef(layout, key)];
  for (const later of [tagRef, deletionProposedRef]) refs.push(later(layout, key.package, 'v1'));
  for (const ref of refs) {
    for (let slash = ref.lastIndexOf('/'); slash > 'refs/heads'.length; slash = ref.lastIndexOf('/', slash - 1)) {
      const above = ref.slice(0, slash);
      if (index.ref(above) === undefined) continue;
      throw new SluiceError('Refused', `${ref} cannot exist beside ${above}; remove that one or choose another name`);
    }
  }
}

/** The ConfigMap by which functions learn about their package: its name in deployment repositories, `example` elsewhere. */
function packageContext(name: string): string {
  return [
    'apiVersion: v1',
    'kind: ConfigMap',
    'metadata:',
    '  name: kptfile.kpt.dev',
    '  annotations:',
    '    config.kubernetes.io/local-config: "true"',
    'data:',
    `  name: ${name}`,
    '',
  ].join('\n');
}

function pick(source: { keywords?: readonly string[]; site?: string }): { keywords?: string[]; site?: string } {
  return {
    ...(source.keywords === undefined ? {} : { keywords: [...source.keywords] }),
    ...(source.site === undefined ? {} : { site: source.site }),
  };
}
