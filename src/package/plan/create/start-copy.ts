import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { RevisionKey } from '../../model/identity/identity.ts';
import { packagePath } from '../../model/identity/layout.ts';
import { isPlaceholder, isPublished, type PackageRevision } from '../../model/revision/package-revision.ts';
import type { RevisionSource } from '../../upstream/revision-source.ts';
import type { RepositoryContext } from '../ports/repository-context.ts';
import { currentRecord } from '../records/record-at-tip.ts';
import type { Start } from './start.ts';

/** A published revision of the same package, as it is. */
export async function startCopy(
  repo: RepositoryContext,
  key: RevisionKey,
  request: Extract<RevisionSource, { type: 'copy' }>,
): Promise<Start> {
  const source = repo.index.get(request.source);
  if (source === undefined) throw new SluiceError('NotFound', `package revision "${request.source}" not found`);
  checkCopySource(source, key);
  const content = await repo.content(source);
  const path = packagePath(repo.layout, key.package);
  return {
    subject: 'Creating new revision by copying previous revision',
    task: { type: 'edit', edit: { sourceRef: { name: source.name } } },
    edits: new Map([[path, { oid: content.tree, mode: '040000' }]]),
    // Verdicts are copied and stay valid as long as their inputs are unchanged.
    verdicts: (await currentRecord(repo, source, content)).verdicts,
    source: { kind: 'copy', name: source.name, commit: source.commit, content: content.content },
    basedOn: content.tree,
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
