import { SluiceError } from '../../../foundation/sluice-error.ts';

/** Subtrees that name subtrees double with every step; a real organization has some hundreds of folders. */
const MAX_FOLDERS = 10_000;

export interface FolderNode {
  readonly name: string;
  readonly children: readonly FolderNode[];
}

/** The folders of `spec.config`, with those of `spec.subtrees` in the places that name them. Throws InvalidInput. */
export function treeOfFolders(config: unknown, subtrees: unknown): FolderNode[] {
  const known = new Map<string, FolderNode[]>();
  for (const [name, items] of Object.entries(isObject(subtrees) ? subtrees : {}))
    known.set(name, nodesOf(items, known));
  const tree = nodesOf(config, known);
  expectFew(tree);
  return tree;
}

/** The folders of a hierarchy in layers: each folder of a layer has all folders of the next one. Throws InvalidInput. */
export function layeredFolders(layers: unknown, config: unknown): FolderNode[] {
  let children: FolderNode[] = [];
  for (const layer of [...listOf(layers, 'layers')].reverse().map(nameOf)) {
    const folders = isObject(config) && Object.hasOwn(config, layer) ? config[layer] : undefined;
    if (folders === undefined)
      throw new SluiceError(
        'InvalidInput',
        `has no entry for layer "${layer}": add spec.config.${layer}, or remove it from spec.layers`,
      );
    const below = children;
    children = listOf(folders, `config.${layer}`).map((folder) => ({ name: nameOf(folder), children: below }));
  }
  expectFew(children);
  return children;
}

function nodesOf(items: unknown, subtrees: ReadonlyMap<string, FolderNode[]>): FolderNode[] {
  return listOf(items, 'config').flatMap((item) => {
    if (item === null) return [];
    if (!isObject(item)) return [{ name: nameOf(item), children: [] }];
    const [[name, below] = ['', null]] = Object.entries(item);
    return [{ name, children: childrenOf(name, below, subtrees) }];
  });
}

function childrenOf(name: string, below: unknown, subtrees: ReadonlyMap<string, FolderNode[]>): FolderNode[] {
  if (Array.isArray(below)) return nodesOf(below, subtrees);
  if (below === null) return [];
  if (!isObject(below) || !Object.hasOwn(below, '$subtree'))
    throw new SluiceError('InvalidInput', `has something else than a list of folders below "${name}"`);
  const subtree = String(below.$subtree);
  const found = subtrees.get(subtree);
  if (found === undefined) throw new SluiceError('InvalidInput', `references non-existent subtree "${subtree}"`);
  return found;
}

function expectFew(tree: readonly FolderNode[]): void {
  // Subtrees are shared, so that counting each once is quick however many folders they come to.
  const counts = new Map<readonly FolderNode[], number>();
  const count = (nodes: readonly FolderNode[]): number => {
    const known = counts.get(nodes);
    if (known !== undefined) return known;
    const sum = nodes.reduce((all, { children }) => all + 1 + count(children), 0);
    counts.set(nodes, sum);
    return sum;
  };
  const folders = count(tree);
  if (folders > MAX_FOLDERS)
    throw new SluiceError('InvalidInput', `comes to ${folders} folders, at most ${MAX_FOLDERS} are made`);
}

function listOf(value: unknown, field: string): unknown[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value)) return value;
  throw new SluiceError('InvalidInput', `has something else than a list in spec.${field}`);
}

function nameOf(value: unknown): string {
  if (['string', 'number', 'boolean'].includes(typeof value)) return String(value);
  throw new SluiceError('InvalidInput', 'has a folder without a name');
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
