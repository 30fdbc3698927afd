import { trimEndsOf } from '../../foundation/text/trim-characters.ts';
import { comparableAddress } from '../../git/open/repository-address.ts';
import { runAtOnce, runInSlices } from '../index/steps.ts';
import type { GitVersion } from '../model/revision/creation-tasks.ts';
import { type PackageRevision, revisionId } from '../model/revision/package-revision.ts';
import type { PackageRepository } from './package-repository.ts';

/**
 * An index of revisions by the location of their upstream package. It is built in the background once the repository is added, and
 * follows its changes, so that a deletion does not read every revision.
 */
export class UpstreamReferences {
  readonly #index: PackageRepository['index'];
  readonly #byPlace = new Map<string, Set<string>>();
  readonly #placeOf = new Map<string, string>();
  /** Most revisions of a repository come from one other. */
  readonly #addresses = new Map<string, string>();
  readonly #reading: Generator<void, void>;
  #closed = false;

  constructor(index: PackageRepository['index']) {
    this.#index = index;
    this.#reading = this.#readAll();
  }

  /** Reads the current revisions, with pauses. */
  read(): Promise<void> {
    return runInSlices(this.#reading);
  }

  /** Ends the reading. */
  close(): void {
    this.#closed = true;
  }

  note(name: string, after: PackageRevision | undefined): void {
    const before = this.#placeOf.get(name);
    const upstream = after?.kptfile?.upstream?.git;
    const place = upstream?.repo === undefined ? undefined : this.#place(upstream.repo, upstream.directory);
    if (place === before) return;
    if (before !== undefined) {
      const names = this.#byPlace.get(before);
      names?.delete(name);
      if (names?.size === 0) this.#byPlace.delete(before);
      this.#placeOf.delete(name);
    }
    if (place === undefined) return;
    this.#placeOf.set(name, place);
    const names = this.#byPlace.get(place);
    if (names === undefined) this.#byPlace.set(place, new Set([name]));
    else names.add(name);
  }

  /** The revisions that name this package, whatever version of it. */
  to(address: string, directory: string): PackageRevision[] {
    // Remaining revisions are read now.
    runAtOnce(this.#reading);
    const names = this.#byPlace.get(this.#place(address, directory)) ?? [];
    return Array.from(names, (name) => this.#index.get(name)).filter((row) => row !== undefined);
  }

  *#readAll(): Generator<void, void> {
    for (const { name } of [...this.#index.all()]) {
      if (this.#closed) return;
      this.note(name, this.#index.get(name));
      yield;
    }
  }

  #place(address: string, directory = ''): string {
    const known = this.#addresses.get(address) ?? comparableAddress(address);
    this.#addresses.set(address, known);
    return `${known}\n${trimEndsOf(directory, '/')}`;
  }
}

/** The refs by which others name a version of a package. */
function refsOf(revision: PackageRevision): ReadonlySet<string> {
  const version = revision.ref.slice(revision.ref.lastIndexOf('/') + 1);
  return new Set([version, `${revision.path}/${version}`, revision.commit]);
}

/** True if a version in Git is this revision, of a repository at `url`. */
export function isVersionOf({ repo, directory, ref }: GitVersion, revision: PackageRevision, url: string): boolean {
  return (
    refsOf(revision).has(ref) &&
    trimEndsOf(directory, '/') === trimEndsOf(revision.path, '/') &&
    comparableAddress(repo) === comparableAddress(url)
  );
}

/** Names of the revisions whose Kptfile names this one, of a repository at `url`, as upstream. */
export function dependentsAmong(all: Iterable<UpstreamReferences>, revision: PackageRevision, url: string): string[] {
  const refs = refsOf(revision);
  const names: string[] = [];
  for (const references of all) {
    for (const other of references.to(url, revision.path)) {
      const ref = other.kptfile?.upstream?.git?.ref ?? '';
      if (refs.has(ref) && revisionId(other) !== revisionId(revision)) names.push(other.name);
    }
  }
  return names.sort();
}
