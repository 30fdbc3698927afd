import { createPacer } from '../../foundation/concurrency/in-slices.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { DamageError, HOW_TO_REPAIR } from '../errors.ts';
import { EMPTY_TREE, type FileMode, type Oid, type TreeEdit } from '../git-repository.ts';
import { checkOid, hashObject } from './object-id.ts';
import type { NewObject, ObjectSource } from './object-source.ts';
import { checkPath } from './paths.ts';
import { encodeName, pickEntries, type RawTreeEntry, rawEntry, spliceTree } from './tree-codec.ts';

/** The edits as a tree of names: what happens at a name, and what happens below it. */
interface EditNode {
  readonly path: string;
  edit: TreeEdit | undefined;
  readonly children: Map<string, EditNode>;
}

/** The result of an edit: the new root and the objects to be written, children before parents. */
export interface EditedTree {
  readonly root: Oid;
  readonly objects: readonly NewObject[];
}

/**
 * Applies edits to a tree. Folders that the edits pass through are read level by level, one round trip each; nothing is written.
 *
 * A folder may be given by its id and edited below in the same call. A file never silently replaces a folder, and a folder that
 * an edit implies never replaces a file: remove the one in the same call, or give the folder as a whole (InvalidInput otherwise).
 */
export async function applyTreeEdits(
  source: ObjectSource,
  base: Oid | undefined,
  edits: ReadonlyMap<string, TreeEdit>,
): Promise<EditedTree> {
  const root = await buildEditNodes(edits);
  await checkGivenObjects(source, edits);
  const trees = new TreeReader(source);
  const start = base === undefined ? undefined : await trees.rootOf(base);
  await trees.load(start, root);
  const editor = new Editor(trees);
  const oid = (await editor.apply(start, root)) ?? EMPTY_TREE;
  if (oid === EMPTY_TREE) editor.objects.push({ oid, type: 'tree', data: Buffer.alloc(0) });
  return { root: oid, objects: editor.objects };
}

async function buildEditNodes(edits: ReadonlyMap<string, TreeEdit>): Promise<EditNode> {
  const pause = createPacer();
  const root: EditNode = { path: '', edit: undefined, children: new Map() };
  for (const [path, edit] of edits) {
    const turn = pause();
    if (turn !== undefined) await turn;
    let node = root;
    for (const segment of checkPath(path)) {
      const name = encodeName(segment);
      let child = node.children.get(name);
      if (child === undefined) {
        child = { path: node === root ? segment : `${node.path}/${segment}`, edit: undefined, children: new Map() };
        node.children.set(name, child);
      }
      node = child;
    }
    node.edit = edit;
  }
  return root;
}

/**
 * Objects given by id must exist and have the type of their mode. The commit of a submodule is in another repository.
 */
async function checkGivenObjects(source: ObjectSource, edits: ReadonlyMap<string, TreeEdit>): Promise<void> {
  const given: { path: string; oid: Oid; mode: FileMode }[] = [];
  for (const [path, edit] of edits) {
    if (edit === null || !('oid' in edit)) continue;
    checkOid(edit.oid, `object for ${JSON.stringify(path)}`);
    if (edit.mode !== '160000' && edit.oid !== EMPTY_TREE) given.push({ path, oid: edit.oid, mode: edit.mode });
  }
  const stats = await source.statObjects(given.map(({ oid }) => oid));
  for (const [index, { path, oid, mode }] of given.entries()) {
    const type = stats[index]?.type;
    if (type === undefined)
      throw new SluiceError('NotFound', `object ${oid} for ${JSON.stringify(path)} does not exist: write it first`);
    if (type !== (mode === '040000' ? 'tree' : 'blob'))
      throw new SluiceError('InvalidInput', `${JSON.stringify(path)} has mode ${mode}, but ${oid} is a ${type}`);
  }
}

/** Reads the trees along the edited paths. */
class TreeReader {
  readonly #source: ObjectSource;
  readonly #trees = new Map<Oid, Buffer>([[EMPTY_TREE, Buffer.alloc(0)]]);
  /** The entries that the edits of a node found in its tree: a tree can be large, and is scanned once. */
  readonly #picked = new Map<EditNode, { readonly oid: Oid; readonly entries: ReadonlyMap<string, RawTreeEntry> }>();

  constructor(source: ObjectSource) {
    this.#source = source;
  }

  /** The tree of a commit, tag or tree. */
  async rootOf(oid: Oid): Promise<Oid> {
    if (checkOid(oid, 'base of an edit') === EMPTY_TREE) return EMPTY_TREE;
    const [object] = await this.#source.readObjects([`${oid}:`]);
    if (object?.type !== 'tree') throw new SluiceError('NotFound', `${oid} is no tree of this repository`);
    this.#trees.set(object.oid, object.data);
    return object.oid;
  }

  /** Loads every tree that the edits below `root` pass through. */
  async load(start: Oid | undefined, root: EditNode): Promise<void> {
    let level: [Oid, EditNode][] = start === undefined ? [] : [[start, root]];
    for (const [oid, node] of givenTrees(root)) level.push([oid, node]);
    while (level.length > 0) {
      await this.#read(level.map(([oid]) => oid));
      level = level.flatMap(([oid, node]) => this.#below(oid, node));
    }
  }

  data(oid: Oid): Buffer {
    const data = this.#trees.get(oid);
    if (data === undefined) throw new SluiceError('Internal', `tree ${oid} was not loaded`);
    return data;
  }

  /** Returns the entries that the edits below a node affect, by name. */
  entries(oid: Oid, node: EditNode): ReadonlyMap<string, RawTreeEntry> {
    const known = this.#picked.get(node);
    if (known?.oid === oid) return known.entries;
    const entries = pickEntries(this.data(oid), oid, node.children);
    this.#picked.set(node, { oid, entries });
    return entries;
  }

  #below(oid: Oid, node: EditNode): [Oid, EditNode][] {
    const next: [Oid, EditNode][] = [];
    for (const entry of this.entries(oid, node).values()) {
      const child = node.children.get(entry.rawName);
      // Folders that are replaced or removed as a whole are not read.
      const passes = child !== undefined && child.children.size > 0 && (child.edit === undefined || isBlob(child.edit));
      if (passes && entry.mode === '040000') next.push([entry.oid, child]);
    }
    return next;
  }

  async #read(oids: readonly Oid[]): Promise<void> {
    const unknown = [...new Set(oids)].filter((oid) => !this.#trees.has(oid));
    const objects = await this.#source.readObjects(unknown);
    for (const [index, oid] of unknown.entries()) {
      const object = objects[index];
      if (object === undefined) throw new DamageError(`tree ${oid} is missing. ${HOW_TO_REPAIR}`);
      if (object.type !== 'tree')
        throw new SluiceError(
          'Corrupt',
          `a tree names the ${object.type} ${oid} as a folder. Commit its files again with git`,
        );
      this.#trees.set(oid, object.data);
    }
  }
}

/** Folders given by their id that are edited further below. */
function* givenTrees(node: EditNode): Generator<[Oid, EditNode]> {
  for (const child of node.children.values()) {
    const { edit } = child;
    if (edit != null && 'oid' in edit && edit.mode === '040000' && child.children.size > 0) yield [edit.oid, child];
    yield* givenTrees(child);
  }
}

class Editor {
  /** Children before parents. */
  readonly objects: NewObject[] = [];
  readonly #trees: TreeReader;
  /** One edit can build thousands of trees. */
  readonly #pause = createPacer();

  constructor(trees: TreeReader) {
    this.#trees = trees;
  }

  /** Applies the edits below `node` to the tree; undefined if it has no entries afterwards. */
  async apply(base: Oid | undefined, node: EditNode): Promise<Oid | undefined> {
    if (node.children.size === 0) return base === EMPTY_TREE ? undefined : base;
    const tree = base ?? EMPTY_TREE;
    const before = this.#trees.entries(tree, node);
    const changes = new Map<string, RawTreeEntry | undefined>();
    for (const [name, child] of node.children) {
      const turn = this.#pause();
      if (turn !== undefined) await turn;
      const old = before.get(name);
      const entry = await this.#entry(old, name, child);
      if (entry?.oid !== old?.oid || entry?.mode !== old?.mode) changes.set(name, entry);
    }
    if (changes.size === 0) return tree === EMPTY_TREE ? undefined : tree;
    const data = spliceTree(this.#trees.data(tree), tree, changes);
    if (data.length === 0) return undefined;
    const oid = hashObject('tree', data);
    this.objects.push({ oid, type: 'tree', data });
    return oid;
  }

  /** Returns the entry of a name after its own edit and those below it. */
  async #entry(old: RawTreeEntry | undefined, name: string, node: EditNode): Promise<RawTreeEntry | undefined> {
    const { edit } = node;
    if (edit === undefined) {
      if (old !== undefined && old.mode !== '040000') {
        if (!addsEntry(node)) return old;
        throw conflictingEdit(node.path, 'is a file, so that nothing can be written below it');
      }
      return folder(name, await this.apply(old?.oid, node));
    }
    if (edit === null) return folder(name, await this.apply(undefined, node));
    if ('oid' in edit && edit.mode === '040000') return folder(name, await this.apply(edit.oid, node));
    const rest = old?.mode === '040000' ? await this.apply(old.oid, node) : undefined;
    if (rest !== undefined) throw conflictingEdit(node.path, 'is a folder that is not empty');
    if (addsEntry(node)) throw conflictingEdit(node.path, 'cannot be a file and a folder');
    if ('oid' in edit) return rawEntry(edit.mode, name, edit.oid);
    const oid = hashObject('blob', edit.data);
    this.objects.push({ oid, type: 'blob', data: edit.data });
    const kept = old?.mode === '100755' ? '100755' : '100644';
    return rawEntry(edit.mode ?? kept, name, oid);
  }
}

function folder(name: string, oid: Oid | undefined): RawTreeEntry | undefined {
  return oid === undefined ? undefined : rawEntry('040000', name, oid);
}

/** True if an edit below the node adds a file or folder. */
function addsEntry(node: EditNode): boolean {
  for (const child of node.children.values()) if (child.edit != null || addsEntry(child)) return true;
  return false;
}

function isBlob(edit: TreeEdit): boolean {
  return edit !== null && ('data' in edit || edit.mode !== '040000');
}

function conflictingEdit(path: string, why: string): SluiceError {
  return new SluiceError(
    'InvalidInput',
    `${JSON.stringify(path)} ${why}: remove what is in the way in the same edit or choose another path`,
  );
}
