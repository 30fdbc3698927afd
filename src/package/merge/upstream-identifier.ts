import { isMap, isScalar, type Pair, type YAMLMap } from 'yaml';
import type { ResourceIdentity } from './resource-file.ts';
import { entryKey, readYamlDocument } from './yaml-document.ts';

/** `group|kind|namespace|name` of the resource that a resource was cloned from. kpt writes it beside its comment, and functions read it. */
export const UPSTREAM_IDENTIFIER = 'internal.kpt.dev/upstream-identifier';

/**
 * The text of a resource with the annotation that names its upstream, as kpt writes it; all other lines stay byte for byte. The
 * same text where metadata or its annotations are not written as blocks of lines, or the identity has no plain form.
 */
export function withUpstreamIdentifier(text: string, { group, kind, namespace, name }: ResourceIdentity): string {
  const value = `${group}|${kind}|${namespace || 'default'}|${name}`;
  if (!/^[\w.:~|-]+$/.test(value)) return text;
  const written = value.startsWith('|') ? `'${value}'` : value;
  const metadata = blockAt(readYamlDocument(text)?.contents, 'metadata');
  if (metadata === undefined) return text;
  const entry = `${UPSTREAM_IDENTIFIER}: ${written}`;
  const annotations = entryOf(metadata.value, 'annotations');
  if (annotations === undefined) {
    const step = ' '.repeat(Math.max(columnOf(text, metadata.value) - columnOfKey(text, metadata), 1));
    return insertBelow(text, metadata, ['annotations:', `${step}${entry}`]);
  }
  const block = blockAt(metadata.value, 'annotations');
  if (block === undefined) return text;
  const present = entryOf(block.value, UPSTREAM_IDENTIFIER)?.value;
  if (present === undefined) return insertBelow(text, block, [entry]);
  if (!isScalar(present) || present.range == null || present.value === value) return text;
  const [start, end] = present.range;
  return text.slice(start, end).includes('\n') ? text : text.slice(0, start) + written + text.slice(end);
}

type Block = Pair & { readonly value: YAMLMap };

function entryOf(map: YAMLMap, key: string): Pair | undefined {
  return map.items.find((item) => entryKey(item.key) === key);
}

/** Returns the entry of a map that contains a block map, which begins on a separate line. */
function blockAt(map: YAMLMap | undefined, key: string): Block | undefined {
  const found = map === undefined ? undefined : entryOf(map, key);
  if (found === undefined || !isMap(found.value) || found.value.flow === true || found.value.items.length === 0)
    return undefined;
  return found as Block;
}

/** Inserts lines as the first ones of a block, indented as its entries are. */
function insertBelow(text: string, block: Block, lines: readonly string[]): string {
  const from = startOf(block.key);
  const lineEnd = text.indexOf('\n', from);
  const first = startOf(block.value.items[0]?.key);
  const indent = ' '.repeat(columnOf(text, block.value));
  if (lineEnd < 0 || first <= lineEnd || text.slice(first - indent.length, first) !== indent) return text;
  const eol = text[lineEnd - 1] === '\r' ? '\r\n' : '\n';
  const added = lines.map((line) => `${indent}${line}${eol}`).join('');
  return text.slice(0, lineEnd + 1) + added + text.slice(lineEnd + 1);
}

function columnOf(text: string, map: YAMLMap): number {
  const start = startOf(map.items[0]?.key);
  return start - (text.lastIndexOf('\n', start - 1) + 1);
}

function columnOfKey(text: string, { key }: Pair): number {
  const start = startOf(key);
  return start - (text.lastIndexOf('\n', start - 1) + 1);
}

function startOf(node: unknown): number {
  return (isScalar(node) ? node.range?.[0] : undefined) ?? 0;
}
