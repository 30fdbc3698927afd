import { SluiceError } from '../../foundation/sluice-error.ts';
import type { FileMode, GitRepository, TreeEdit } from '../../git/git-repository.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import type { PackageFile, PackageFiles } from '../merge/package-files.ts';
import { readPackage } from '../model/content/content.ts';
import type { PackageRevision } from '../model/revision/package-revision.ts';
import type { UpstreamAddress } from './revision-source.ts';

/** Where packages come from that a repository does not hold itself. */
export interface UpstreamReader {
  /** A revision of any registered repository. Throws NotFound. */
  revision(name: string): Promise<UpstreamRevision>;
  /** A folder of any Git repository, for a new revision in `namespace`. Throws what fetching throws; NotFound without such a folder. */
  address(address: UpstreamAddress, namespace: string, context: RequestContext): Promise<UpstreamPackage>;
}

/** A package as it is at one commit. Symbolic links and submodules are left out: they could point out of it. */
export interface UpstreamPackage {
  readonly location: UpstreamLocation;
  readonly files: PackageFiles;
  /** Set if it lies in a registered repository. */
  readonly revision?: PackageRevision;
}

export interface UpstreamRevision extends UpstreamPackage {
  readonly revision: PackageRevision;
}

/** As it stands in a Kptfile. */
export interface UpstreamLocation {
  readonly repo: string;
  readonly directory: string;
  readonly ref: string;
  readonly commit: string;
}

/** For those who know no repository but their own. */
export const NO_UPSTREAMS: UpstreamReader = {
  revision: async (name) => {
    throw new SluiceError('NotFound', `package revision "${name}" not found`);
  },
  address: async () => {
    throw new SluiceError(
      'Unsupported',
      'packages are cloned from registered repositories only; register the repository and name a package revision',
    );
  },
};

/** Reads the files of a package at `<commit or tree>:<path>`. Throws NotFound, and LimitExceeded above the bounds of a package. */
export async function readPackageFiles(git: GitRepository, specification: string): Promise<PackageFiles> {
  const { files } = await readPackage(git, specification, undefined);
  const modes = new Map<string, FileMode>();
  for (const { path, mode } of await git.listFiles(specification)) modes.set(path, mode);
  return new Map(
    [...files].map(([path, data]): [string, PackageFile] => [
      path,
      modes.get(path) === '100755' ? { data, executable: true } : { data },
    ]),
  );
}

/** The edit that writes a file. */
export function fileEdit({ data, executable }: PackageFile): TreeEdit {
  return { data, mode: executable === true ? '100755' : '100644' };
}
