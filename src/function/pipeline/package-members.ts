import type { Resource } from '../resource/resource.ts';
import type { PipelinePackage } from './packages.ts';

/** The resources of a package and of those in it, with files below the package's folder, for as long as its functions run. */
export interface Members {
  /** Its own ones first, then those of the packages in it, in the order of their paths; new ones last. Replaced by functions. */
  items: readonly Resource[];
  /** Those of them that do not belong to a package in it. */
  own(): Resource[];
}

/** Maps resources to their packages. */
export class PackageMembers {
  readonly #folders: ReadonlySet<string>;
  #all: readonly Resource[];

  /** `packages` in the order in which their resources are to be. */
  constructor(packages: readonly PipelinePackage[], resources: readonly Resource[]) {
    this.#folders = new Set(packages.map(({ path }) => path));
    const byFolder = Map.groupBy(resources, ({ file }) => this.#folderOf(file));
    this.#all = packages.flatMap(({ path }) => byFolder.get(path) ?? []);
  }

  /** All resources, with files below the root package's folder. */
  get all(): readonly Resource[] {
    return this.#all;
  }

  /** Passes the members of a package to a visitor, and stores its changes. */
  async within<Result>(
    { path }: PipelinePackage,
    action: (members: Members) => Promise<Result> | Result,
  ): Promise<Result> {
    const prefix = path === '' ? '' : `${path}/`;
    const before = new Set(this.#all.filter(({ file }) => file.startsWith(prefix)));
    for (const resource of before) resource.file = resource.file.slice(prefix.length);
    const members: Members = {
      items: [...before],
      own: () => members.items.filter(({ file }) => this.#folderOf(prefix + file) === path),
    };
    try {
      return await action(members);
    } finally {
      for (const resource of members.items) resource.file = prefix + resource.file;
      let items = members.items;
      this.#all = this.#all.flatMap((resource) => {
        if (!before.has(resource)) return [resource];
        const here = items;
        items = [];
        return here;
      });
    }
  }

  /** The folder of the innermost package that a file is in. */
  #folderOf(file: string): string {
    for (let at = file.lastIndexOf('/'); at > 0; at = file.lastIndexOf('/', at - 1)) {
      const folder = file.slice(0, at);
      if (this.#folders.has(folder)) return folder;
    }
    return '';
  }
}
