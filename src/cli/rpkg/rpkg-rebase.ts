import { SluiceError } from '../../foundation/sluice-error.ts';
import { REBASE_ANNOTATION } from '../../package/api/objects/revision-object.ts';
import type { RebaseMode } from '../../package/plan/edit/rebase.ts';
import { packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import type { Access } from '../access/access.ts';
import { findRevision } from '../access/find-revision.ts';
import { forEachName } from '../access/for-each-name.ts';
import { inPackages } from '../access/in-packages.ts';
import { commitOf } from '../access/package-contents.ts';
import type { ActorOptions, CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';

export interface RebaseOptions extends PlaceOptions, ActorOptions {
  readonly keep?: boolean;
  readonly reason?: string;
}

/** `sluice rpkg rebase` */
export function rpkgRebase(
  names: readonly string[],
  options: RebaseOptions,
  invocation: Invocation,
): Promise<CommandResult> {
  const rebase = async (access: Access, name: string) => {
    const { client, isSluice, server } = access;
    const revision = await findRevision(access, name);
    if (!isSluice) throw new SluiceError('Unsupported', `${server} merges no main branch; push the merged files`);
    const mode: RebaseMode = options.keep === true ? 'keep' : 'merge';
    const annotations = { ...revision.metadata.annotations, [REBASE_ANNOTATION]: mode };
    const request = { ...revision, metadata: { ...revision.metadata, annotations } };
    const reason = options.reason === undefined ? {} : { reason: options.reason };
    const made = await client.update(packageRevisionKind, request, reason);
    return commitOf(made) === commitOf(revision) ? 'has the package of the main branch already' : 'rebased';
  };
  return inPackages(options, invocation, (access) =>
    forEachName(names, invocation, access, (name) => rebase(access, name), options),
  );
}
