import { readKptfile } from '../../../../kptfile-schema/index.ts';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { TreeEdit } from '../../../git/git-repository.ts';
import type { RequestContext } from '../../../resource/object/request-context.ts';
import { markResources } from '../../merge/mark-resources.ts';
import type { RevisionKey } from '../../model/identity/identity.ts';
import { packagePath } from '../../model/identity/layout.ts';
import { isPlaceholder } from '../../model/revision/package-revision.ts';
import type { RevisionSource, UpstreamReference } from '../../upstream/revision-source.ts';
import { fileEdit, type UpstreamPackage, type UpstreamReader } from '../../upstream/upstream-reader.ts';
import type { RepositoryContext } from '../ports/repository-context.ts';
import { currentRecord } from '../records/record-at-tip.ts';
import { ownNameOf, withContexts } from './package-context.ts';
import type { Start } from './start.ts';
import { requestsIn, withUpstream } from './upstream-kptfile.ts';

/** A package from elsewhere: its files under a new name, with a Kptfile that names their upstream. */
export async function startClone(
  repo: RepositoryContext,
  key: RevisionKey,
  { upstream: reference }: Extract<RevisionSource, { type: 'clone' }>,
  upstreams: UpstreamReader,
  context: RequestContext,
): Promise<Start> {
  const upstream: UpstreamPackage =
    'revision' in reference
      ? await upstreams.revision(reference.revision)
      : await upstreams.address(reference.git, repo.namespace, context);
  const { revision } = upstream;
  const followsBranch = 'revision' in reference && reference.followsBranch === true;
  if (revision !== undefined && isPlaceholder(revision) && !followsBranch) {
    throw new SluiceError(
      'Refused',
      `upstream revision may not be the placeholder package revision ${revision.key.repository}/${revision.name}; clone a published revision`,
    );
  }
  const where = revision?.name ?? `${upstream.location.repo}/${upstream.location.directory}@${upstream.location.ref}`;
  const ownName = ownNameOf(key.package);
  let files = withUpstream(upstream.files, upstream.location, where, ownName);
  warnOfRequests(upstream.files, where, context);
  if (repo.deployment) files = withContexts(files, ownName);
  const path = packagePath(repo.layout, key.package);
  const edits = new Map<string, TreeEdit>([[path, null]]);
  for (const [file, content] of markResources(files)) edits.set(`${path}/${file}`, fileEdit(content));
  return {
    subject: 'Creating new revision by cloning',
    task: { type: 'clone', clone: { upstreamRef: asWritten(reference) } },
    edits,
    // Conditions are copied as texts. Verdicts of another repository are not valid in this one.
    verdicts:
      revision?.key.repository === key.repository
        ? (await currentRecord(repo, revision, await repo.content(revision))).verdicts
        : [],
  };
}

function warnOfRequests(files: UpstreamPackage['files'], where: string, context: RequestContext): void {
  const kptfile = files.get('Kptfile');
  const read = kptfile === undefined ? undefined : readKptfile(kptfile.data);
  const requests = read?.ok === true ? requestsIn(read.kptfile) : [];
  if (requests.length === 0) return;
  context.warn?.(
    `${requests.join(' and ')} in the Kptfile of ${where} was not copied, since it requests automatic steps for that package only; set it on the new package if you want them`,
  );
}

/** The reference in Porch's words. */
function asWritten(reference: UpstreamReference): unknown {
  if ('revision' in reference) return { upstreamRef: { name: reference.revision } };
  const { repo, ref, directory, secretRef } = reference.git;
  return { type: 'git', git: { repo, ref, directory, ...(secretRef === undefined ? {} : { secretRef }) } };
}
