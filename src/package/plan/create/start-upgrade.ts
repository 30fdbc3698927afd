import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { TreeEdit } from '../../../git/git-repository.ts';
import type { RequestContext } from '../../../resource/object/request-context.ts';
import { markResources } from '../../merge/mark-resources.ts';
import { sameFile } from '../../merge/package-files.ts';
import { keptText } from '../../merge/still-overwritten.ts';
import type { RevisionKey } from '../../model/identity/identity.ts';
import { packagePath } from '../../model/identity/layout.ts';
import { isPlaceholder, isPublished, type PackageRevision } from '../../model/revision/package-revision.ts';
import type { RevisionSource } from '../../upstream/revision-source.ts';
import { updatePackage } from '../../upstream/update-package.ts';
import { fileEdit, type UpstreamReader } from '../../upstream/upstream-reader.ts';
import type { RepositoryContext } from '../ports/repository-context.ts';
import { currentRecord } from '../records/record-at-tip.ts';
import { ownNameOf, withContexts } from './package-context.ts';
import type { Start } from './start.ts';
import { withUpstream } from './upstream-kptfile.ts';

/** A published revision of the same package, with what changed from one revision of its upstream to another. */
export async function startUpgrade(
  repo: RepositoryContext,
  key: RevisionKey,
  {
    oldUpstream,
    newUpstream,
    local: localName,
    strategy = 'resource-merge',
  }: Extract<RevisionSource, { type: 'upgrade' }>,
  upstreams: UpstreamReader,
  context: RequestContext,
): Promise<Start> {
  const [original, updated, local] = await Promise.all([
    upstreams.revision(oldUpstream),
    upstreams.revision(newUpstream),
    upstreams.revision(localName),
  ]);
  checkPublished(original.revision, 'current upstream revision');
  checkPublished(updated.revision, 'target upstream revision');
  checkPublished(local.revision, 'local package revision');
  if (local.revision.key.repository !== key.repository || local.revision.key.package !== key.package) {
    const { repository, package: path } = local.revision.key;
    throw new SluiceError(
      'InvalidInput',
      `local package revision must be from same package ${key.repository}/${key.package} (got: ${repository}/${path})`,
    );
  }
  const merged = updatePackage({ local: local.files, original: original.files, updated: updated.files }, strategy);
  // Context files are generated again below.
  const keptLocal = merged.keptLocal.filter(
    (path) => !(repo.deployment && /(?:^|\/)package-context\.yaml$/.test(path)),
  );
  const kept = keptText(keptLocal);
  if (kept !== undefined) context.warn?.(kept);
  let files = withUpstream(merged.files, updated.location, local.revision.name);
  if (repo.deployment) files = withContexts(files, ownNameOf(key.package));
  files = markResources(files);

  const path = packagePath(repo.layout, key.package);
  const content = await repo.content(local.revision);
  // Entries that are neither files nor folders stay unchanged.
  const edits = new Map<string, TreeEdit>([[path, { oid: content.tree, mode: '040000' }]]);
  for (const file of local.files.keys()) if (!files.has(file)) edits.set(`${path}/${file}`, null);
  for (const [file, next] of files) {
    if (!sameFile(local.files.get(file), next)) edits.set(`${path}/${file}`, fileEdit(next));
  }
  return {
    subject: 'Upgrading revision',
    task: {
      type: 'upgrade',
      upgrade: {
        oldUpstreamRef: { name: oldUpstream },
        newUpstreamRef: { name: newUpstream },
        localPackageRevisionRef: { name: localName },
        strategy,
      },
    },
    edits,
    // They are valid as long as their inputs are unchanged.
    verdicts: (await currentRecord(repo, local.revision, content)).verdicts,
    source: { kind: 'upgrade', name: local.revision.name, commit: local.revision.commit, content: content.content },
    basedOn: content.tree,
    overwritten: {
      by: 'upstream',
      overwritten: merged.overwritten,
      kept,
      local: local.files,
      original: original.files,
    },
  };
}

function checkPublished(revision: PackageRevision, what: string): void {
  if (isPlaceholder(revision)) {
    throw new SluiceError(
      'Refused',
      `${what} may not be the placeholder package revision ${revision.key.repository}/${revision.name}`,
    );
  }
  if (!isPublished(revision)) {
    throw new SluiceError(
      'Refused',
      `all source PackageRevisions of upgrade task must be published, "${revision.name}" is not`,
    );
  }
}
