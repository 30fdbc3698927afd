/** Packages whose last change is known: some 100 bytes each. A reader that missed more changes reads everything again. */
const MAX_PACKAGES = 2_000;

export interface PackageChanges {
  /** For the next call. */
  readonly version: number;
  /** Undefined if all packages may have changed. */
  readonly packages: readonly string[] | undefined;
}

/** Which packages have other rows than before, so that many readers can follow an index without a copy of it each. */
export class ChangedPackages {
  #version: number;
  /** Version up to which changes were forgotten. */
  #forgotten: number;
  /** The version of the last change of each package, the latest last. */
  readonly #versions: Map<string, number>;

  constructor(earlier?: ChangedPackages) {
    this.#version = earlier === undefined ? 0 : earlier.#version;
    this.#forgotten = earlier === undefined ? 0 : earlier.#forgotten;
    this.#versions = new Map(earlier === undefined ? [] : earlier.#versions);
  }

  note(packageName: string): void {
    this.#version += 1;
    this.#versions.delete(packageName);
    this.#versions.set(packageName, this.#version);
    if (this.#versions.size <= MAX_PACKAGES) return;
    for (const [oldest, version] of this.#versions) {
      this.#versions.delete(oldest);
      this.#forgotten = version;
      return;
    }
  }

  /** The packages that changed after a version that an earlier call returned; without one, all may have. */
  since(version: number | undefined): PackageChanges {
    const now = this.#version;
    if (version === now) return { version: now, packages: [] };
    if (version === undefined || version < this.#forgotten) return { version: now, packages: undefined };
    const packages: string[] = [];
    for (const [name, changed] of this.#versions) if (changed > version) packages.push(name);
    return { version: now, packages };
  }
}
