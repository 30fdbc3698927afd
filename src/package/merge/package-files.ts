/** A file of a package. */
export interface PackageFile {
  readonly data: Buffer;
  readonly executable?: boolean;
}

/** The files of a package by their path below its folder. */
export type PackageFiles = ReadonlyMap<string, PackageFile>;

/** True if both are absent, or have the same bytes. */
export function sameFile(a: PackageFile | undefined, b: PackageFile | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.data.equals(b.data);
}

/** The folder of the innermost package that a file belongs to: that of the nearest Kptfile, empty for the root. */
export function packageFolderOf(files: PackageFiles, path: string): string {
  for (let slash = path.lastIndexOf('/'); slash > 0; slash = path.lastIndexOf('/', slash - 1)) {
    const folder = path.slice(0, slash);
    if (files.has(`${folder}/Kptfile`)) return folder;
  }
  return '';
}

/** True for the Kptfile of the package itself and of the packages in it. */
export function isKptfilePath(path: string): boolean {
  return path === 'Kptfile' || path.endsWith('/Kptfile');
}
