import { readResources } from '../resource/read-resources.ts';
import type { Resource } from '../resource/resource.ts';
import { writeResources } from '../resource/write-resources.ts';
import { readResourceList, writeResourceList } from './resource-list-text.ts';

/** The output of `fn source`. */
export interface SourcedPackage {
  /** A ResourceList as YAML. */
  readonly text: string;
  /** Files that are not in it, with the reason; one line each. */
  readonly notes: readonly string[];
}

/** The resources in files of a package as one ResourceList, with annotations for their places. */
export function sourcePackage(files: ReadonlyMap<string, string>, config?: Resource): SourcedPackage {
  const { resources, notes } = readResources(files);
  return { text: writeResourceList({ items: resources, config }), notes };
}

/**
 * Returns the files of the items of a ResourceList, by their annotations; each item without them gets a new file. Throws
 * InvalidInput, as `readResourceList` and `writeResources` do.
 */
export function sinkPackage(text: string): Map<string, string> {
  const { items } = readResourceList(text);
  const files = new Map<string, string>();
  for (const [path, content] of writeResources({ files: new Map(), resources: [] }, items)) {
    if (content !== null) files.set(path, content);
  }
  return files;
}
