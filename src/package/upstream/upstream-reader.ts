import { SluiceError } from '../../foundation/sluice-error.ts';
import type { FileMode, GitRepository, TreeEdit } from '../../git/git-repository.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import type { PackageFile, PackageFiles } from '../merge/package-files.ts';
import { readPackage } from '../model/content/content.ts';
import type { PackageRevision } from '../model/revision/package-revision.ts';
import type { UpstreamAddress } from './revision-source.ts';

/** Reads upstream packages that are not in the repository itself. */
export interface UpstreamReader {
  /** A revision of any registered repository. Throws NotFound. */
  revision(name: string): Promise<UpstreamRevision>;
  /**
   * Reads a folder of any Git repository, for a new revision in `namespace`. Throws the errors of fetching; NotFound if the folder
   * does not exist.
   */
  address(address: UpstreamAddress, namespace: string, context: RequestContext): Promise<UpstreamPackage>;
}

/** A package at one commit, without symbolic links and submodules, which could point out of it. */
export interface UpstreamPackage {
  readonly location: UpstreamLocation;
  readonly files: PackageFiles;
  /** Set if it is in a registered repository. */
  readonly revision?: PackageRevision;
}

export interface UpstreamRevision extends UpstreamPackage {
  readonly revision: PackageRevision;
}

/** The location as in a Kptfile. */
export interface UpstreamLocation {
  readonly repo: string;
  readonly directory: string;
  readonly ref: string;
  readonly commit: string;
}

/** For callers with only their own repository. */
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
