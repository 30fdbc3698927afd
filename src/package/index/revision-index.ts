import type { GitRepository, Oid, RefChange } from '../../git/git-repository.ts';
import { digest } from '../canonical-json.ts';
import { parseCommitMessage } from '../commit-message.ts';
import { type RevisionKey, revisionName, revisionUid } from '../identity.ts';
import { mainRef, packagePath, parseRef, type RefMeaning, type RepositoryLayout } from '../layout.ts';
import type { PackageRevision } from '../package-revision.ts';
import { type Candidate, foldersAbove, judgeCandidate, precedes, workspaceOf } from './candidate.ts';
import { FactCache } from './fact-cache.ts';
import { commitKey, FactReader } from './fact-reader.ts';

export interface IndexChange {
  readonly before: PackageRevision | undefined;
  readonly after: PackageRevision | undefined;
}

type RevisionRef = Extract<RefMeaning, { kind: 'draft' | 'proposed' | 'published' }>;

const NO_FACTS = parseCommitMessage('');

/**
 * The revisions of one repository, derived from its refs. It is brought up to date with ref changes, and the work follows the
 * number of changes: one draft that moves costs the same in a repository of ten packages or ten thousand.
 */
export class RevisionIndex {
  readonly #repository: string;
  readonly #namespace: string;
  readonly #layout: RepositoryLayout;
  readonly #cache: FactCache;
  readonly #reader: FactReader;

  readonly #refs = new Map<string, Oid>();
  /** Revisions by the ref that shows them. */
  readonly #candidates = new Map<string, Candidate>();
  /** Packages on the main branch, by package. */
  #placeholders = new Map<string, Candidate>();
  #folders = new Map<string, { tree: Oid; kptfileBlob: Oid }>();
  /** Refs that show revisions of a package. */
  readonly #refsByPackage = new Map<string, Set<string>>();
  readonly #packageByUid = new Map<string, string>();
  readonly #rows = new Map<string, PackageRevision>();
  readonly #namesByPackage = new Map<string, Set<string>>();
  /** Packages below a folder, for every folder above a package. */
  readonly #packagesBelow = new Map<string, Set<string>>();

  constructor(options: {
    repository: string;
    namespace: string;
    layout: RepositoryLayout;
    git: GitRepository;
    cache: FactCache;
  }) {
    this.#repository = options.repository;
    this.#namespace = options.namespace;
    this.#layout = options.layout;
    this.#cache = options.cache;
    this.#reader = new FactReader(options.git, options.cache);
  }

  get(name: string): PackageRevision | undefined {
    return this.#rows.get(name);
  }

  all(): IterableIterator<PackageRevision> {
    return this.#rows.values();
  }

  /** All revisions of one package. */
  ofPackage(packageName: string): PackageRevision[] {
    const names = this.#namesByPackage.get(packageName) ?? [];
    return [...names].flatMap((name) => this.#rows.get(name) ?? []);
  }

  /** A package above or below the given path, if there is one. */
  nestedWith(packageName: string): string | undefined {
    for (const folder of foldersAbove(packageName)) if (this.#namesByPackage.has(folder)) return folder;
    const [below] = this.#packagesBelow.get(packageName) ?? [];
    return below;
  }

  /** What a ref points to, as far as the index knows. */
  ref(name: string): Oid | undefined {
    return this.#refs.get(name);
  }

  refs(): ReadonlyMap<string, Oid> {
    return this.#refs;
  }

  get mainHead(): Oid | undefined {
    return this.#refs.get(mainRef(this.#layout));
  }

  /** What a cache has to keep for a fast restart: the facts that the present revisions are made of, and no others. */
  liveFacts(): FactCache {
    const live = new FactCache();
    const head = this.mainHead;
    if (head !== undefined) this.#keepCommit(live, head, this.#layout.directory);
    for (const { tree, kptfileBlob } of this.#folders.values()) live.folders.set(tree, kptfileBlob);
    for (const candidate of [...this.#candidates.values(), ...this.#placeholders.values()]) {
      this.#keepCommit(live, candidate.refOid, candidate.path);
      const blob = candidate.tip.kptfileBlob;
      const kptfile = blob === undefined ? undefined : this.#cache.kptfiles.get(blob);
      if (blob !== undefined && kptfile !== undefined) live.kptfiles.set(blob, kptfile);
      const recordOid = this.#refs.get(this.#layout.recordPrefix + candidate.uid);
      const record = recordOid === undefined ? undefined : this.#cache.records.get(recordOid);
      if (recordOid !== undefined && record !== undefined) live.records.set(recordOid, record);
    }
    return live;
  }

  #keepCommit(live: FactCache, oid: Oid, path: string): void {
    const key = commitKey({ oid, path });
    const info = this.#cache.commits.get(key);
    if (info !== undefined) live.commits.set(key, info);
  }

  /** What differs between the refs given and those that the index stands for. */
  diff(refs: readonly { name: string; oid: Oid }[]): RefChange[] {
    const changes: RefChange[] = [];
    const seen = new Set<string>();
    for (const { name, oid } of refs) {
      seen.add(name);
      const before = this.#refs.get(name);
      if (before !== oid) changes.push({ name, before, after: oid });
    }
    for (const [name, before] of this.#refs) {
      if (!seen.has(name)) changes.push({ name, before, after: undefined });
    }
    return changes;
  }

  /** Takes ref changes in and returns the revisions that changed by them. */
  async apply(changes: readonly RefChange[]): Promise<IndexChange[]> {
    try {
      return await this.#apply(changes);
    } catch (error) {
      // What could not be read counts as not seen, so that the next look finds the same changes again.
      for (const { name, before } of changes) {
        if (before === undefined) this.#refs.delete(name);
        else this.#refs.set(name, before);
      }
      throw error;
    }
  }

  async #apply(changes: readonly RefChange[]): Promise<IndexChange[]> {
    const touched = new Set<string>();
    const toRead: { ref: string; oid: Oid; meaning: RevisionRef }[] = [];
    const recordOids: Oid[] = [];
    let mainMoved = false;
    for (const change of changes) {
      if (change.after === undefined) this.#refs.delete(change.name);
      else this.#refs.set(change.name, change.after);
      const meaning = parseRef(this.#layout, change.name);
      if (meaning.kind === 'main') mainMoved = true;
      else if (meaning.kind === 'record') {
        const packageName = this.#packageByUid.get(meaning.uid);
        if (packageName !== undefined) touched.add(packageName);
        if (change.after !== undefined) recordOids.push(change.after);
      } else if (meaning.kind === 'deletionProposed') touched.add(meaning.package);
      else if (meaning.kind !== 'other') {
        touched.add(meaning.package);
        if (change.after === undefined) this.#forget(change.name, meaning.package);
        else toRead.push({ ref: change.name, oid: change.after, meaning });
      }
    }
    await this.#readCandidates(toRead);
    await this.#readRecords(recordOids, touched);
    if (mainMoved) for (const packageName of await this.#readMain()) touched.add(packageName);
    return [...touched].flatMap((packageName) => this.#assemble(packageName));
  }

  async #readCandidates(places: readonly { ref: string; oid: Oid; meaning: RevisionRef }[]): Promise<void> {
    const infos = await this.#reader.commits(
      places.map(({ oid, meaning }) => ({ oid, path: packagePath(this.#layout, meaning.package) })),
    );
    const blobs = infos.flatMap((info) => info?.kptfileBlob ?? []);
    await this.#reader.kptfiles(blobs);
    for (const [position, { ref, oid, meaning }] of places.entries()) {
      const info = infos[position];
      // A tag on a commit without this package is not a revision, many repositories have such tags; a draft branch always is one.
      if (info === undefined || (meaning.kind === 'published' && info.kptfileBlob === undefined)) {
        this.#forget(ref, meaning.package);
        continue;
      }
      const fact =
        info.kptfileBlob === undefined
          ? { problem: 'there is no Kptfile' }
          : this.#cache.kptfiles.get(info.kptfileBlob);
      const path = packagePath(this.#layout, meaning.package);
      const workspace =
        meaning.kind === 'published' ? workspaceOf(meaning, path, info.facts.annotations) : meaning.workspace;
      const key = { repository: this.#repository, package: meaning.package, workspace };
      this.#candidates.set(ref, {
        ...this.#identify(key),
        lifecycle: meaning.kind === 'draft' ? 'Draft' : meaning.kind === 'proposed' ? 'Proposed' : 'Published',
        revision: meaning.kind === 'published' ? meaning.revision : 0,
        ref,
        refOid: oid,
        commit: info.oid,
        path,
        kptfile: fact?.kptfile,
        problem: fact === undefined ? 'the Kptfile is missing from the object store' : fact.problem,
        tip: info,
      });
      const known = this.#refsByPackage.get(meaning.package);
      if (known === undefined) this.#refsByPackage.set(meaning.package, new Set([ref]));
      else known.add(ref);
    }
  }

  #identify(key: RevisionKey): Pick<PackageRevision, 'key' | 'name' | 'uid'> {
    const name = revisionName(key);
    const uid = revisionUid(name, this.#namespace);
    this.#packageByUid.set(uid, key.package);
    return { key, name, uid };
  }

  #forget(ref: string, packageName: string): void {
    this.#candidates.delete(ref);
    const known = this.#refsByPackage.get(packageName);
    known?.delete(ref);
    if (known?.size === 0) this.#refsByPackage.delete(packageName);
  }

  /** Records of revisions that only now became known are read too. */
  async #readRecords(oids: readonly Oid[], touched: ReadonlySet<string>): Promise<void> {
    const wanted = new Set(oids);
    for (const packageName of touched) {
      for (const ref of this.#refsByPackage.get(packageName) ?? []) {
        const uid = this.#candidates.get(ref)?.uid;
        const oid = uid === undefined ? undefined : this.#refs.get(this.#layout.recordPrefix + uid);
        if (oid !== undefined) wanted.add(oid);
      }
    }
    await this.#reader.records([...wanted]);
  }

  /** Re-reads the packages on the main branch; returns those that came, went or changed. */
  async #readMain(): Promise<string[]> {
    const head = this.mainHead;
    const folders = head === undefined ? [] : await this.#reader.folders(`${head}:${this.#layout.directory}`);
    const changed = new Set<string>();
    const next = new Map(folders.map((folder) => [folder.path, folder]));
    for (const path of this.#folders.keys()) if (!next.has(path)) changed.add(path);
    for (const [path, folder] of next) if (this.#folders.get(path)?.tree !== folder.tree) changed.add(path);
    this.#folders = next;
    const present = [...changed].flatMap((path) => next.get(path) ?? []);
    const [info] = head === undefined ? [] : await this.#reader.commits([{ oid: head, path: this.#layout.directory }]);
    await this.#reader.kptfiles(present.map((folder) => folder.kptfileBlob));
    for (const path of changed) this.#placeholders.delete(path);
    for (const folder of present) {
      if (head === undefined || info === undefined) continue;
      const fact = this.#cache.kptfiles.get(folder.kptfileBlob);
      const key = { repository: this.#repository, package: folder.path, workspace: this.#layout.branch };
      this.#placeholders.set(folder.path, {
        ...this.#identify(key),
        lifecycle: 'Published',
        revision: -1,
        ref: mainRef(this.#layout),
        refOid: head,
        commit: head,
        path: packagePath(this.#layout, folder.path),
        kptfile: fact?.kptfile,
        problem: fact === undefined ? 'the Kptfile is missing from the object store' : fact.problem,
        // What the head commit says is about the package that was published last, which may be another one.
        tip: { ...info, facts: NO_FACTS, kptfileBlob: folder.kptfileBlob, tree: folder.tree },
      });
    }
    return [...changed];
  }

  /** Puts the revisions of one package together and says which of them changed. */
  #assemble(packageName: string): IndexChange[] {
    const chosen = new Map<string, Candidate>();
    for (const ref of this.#refsByPackage.get(packageName) ?? []) {
      const candidate = this.#candidates.get(ref);
      const other = candidate === undefined ? undefined : chosen.get(candidate.name);
      if (candidate !== undefined && (other === undefined || precedes(candidate, other)))
        chosen.set(candidate.name, candidate);
    }
    const placeholder = this.#placeholders.get(packageName);
    if (placeholder !== undefined && !chosen.has(placeholder.name)) chosen.set(placeholder.name, placeholder);
    const highest = Math.max(0, ...[...chosen.values()].map((candidate) => candidate.revision));

    const changes: IndexChange[] = [];
    const before = this.#namesByPackage.get(packageName) ?? new Set();
    for (const name of before) {
      const row = this.#rows.get(name);
      if (row !== undefined && !chosen.has(name)) {
        this.#rows.delete(name);
        changes.push({ before: row, after: undefined });
      }
    }
    const newest = [...chosen.values()].find((candidate) => candidate.revision > 0 && candidate.revision === highest);
    for (const candidate of chosen.values()) {
      const row = this.#complete(candidate, newest);
      const known = this.#rows.get(row.name);
      if (known?.etag === row.etag) continue;
      this.#rows.set(row.name, row);
      changes.push({ before: known, after: row });
    }
    this.#registerPackage(packageName, new Set(chosen.keys()));
    return changes;
  }

  #registerPackage(packageName: string, names: Set<string>): void {
    if (names.size > 0) this.#namesByPackage.set(packageName, names);
    else this.#namesByPackage.delete(packageName);
    for (const folder of foldersAbove(packageName)) {
      const below = this.#packagesBelow.get(folder) ?? new Set();
      if (names.size > 0) this.#packagesBelow.set(folder, below.add(packageName));
      else if (below.delete(packageName) && below.size === 0) this.#packagesBelow.delete(folder);
    }
  }

  #complete(candidate: Candidate, newest: Candidate | undefined): PackageRevision {
    const latest = candidate === newest;
    const recordOid = this.#refs.get(this.#layout.recordPrefix + candidate.uid);
    const record = (recordOid === undefined ? undefined : this.#cache.records.get(recordOid)) ?? undefined;
    const marked = candidate.lifecycle === 'Published' && this.#deletionMark(candidate) !== undefined;
    const lifecycle = marked ? 'DeletionProposed' : candidate.lifecycle;
    const outOfBand = candidate.lifecycle === 'Published' ? judgeCandidate(candidate, newest) : undefined;
    // Every publication moves the main branch; the placeholders of other packages must not change by that.
    const content = candidate.ref === mainRef(this.#layout) ? candidate.tip.tree : candidate.refOid;
    const etag = digest([candidate.ref, content, recordOid, lifecycle, latest, outOfBand?.reason].join(' '));
    return {
      ...candidate,
      lifecycle,
      latest,
      record,
      recordOid: record === undefined ? undefined : recordOid,
      outOfBand,
      etag,
    };
  }

  #deletionMark(candidate: Candidate): Oid | undefined {
    const version = candidate.revision > 0 ? `v${candidate.revision}` : candidate.key.workspace;
    const mark = this.#refs.get(`refs/heads/deletionProposed/${candidate.path}/${version}`);
    // A mark that is left over from an earlier revision of this number says nothing about this one.
    return candidate.revision > 0 && mark !== candidate.commit ? undefined : mark;
  }
}
