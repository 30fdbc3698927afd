/** Finds packages above or below others. Git stores refs as files, so such packages cannot both have branches and tags. */
export class PackageFolders {
  readonly #packages = new Set<string>();
  /** Packages below a folder, for every folder above a package. */
  readonly #below = new Map<string, Set<string>>();

  add(packageName: string): void {
    if (this.#packages.has(packageName)) return;
    this.#packages.add(packageName);
    for (const folder of foldersAbove(packageName)) {
      const below = this.#below.get(folder);
      if (below === undefined) this.#below.set(folder, new Set([packageName]));
      else below.add(packageName);
    }
  }

  delete(packageName: string): void {
    if (!this.#packages.delete(packageName)) return;
    for (const folder of foldersAbove(packageName)) {
      const below = this.#below.get(folder);
      below?.delete(packageName);
      if (below?.size === 0) this.#below.delete(folder);
    }
  }

  /** A package above or below the given path, if there is one. */
  nestedWith(packageName: string): string | undefined {
    for (const folder of foldersAbove(packageName)) if (this.#packages.has(folder)) return folder;
    const [below] = this.#below.get(packageName) ?? [];
    return below;
  }
}

/** `a/b/c` is in `a` and `a/b`. */
function foldersAbove(packageName: string): string[] {
  const folders: string[] = [];
  for (let slash = packageName.indexOf('/'); slash !== -1; slash = packageName.indexOf('/', slash + 1)) {
    folders.push(packageName.slice(0, slash));
  }
  return folders;
}
