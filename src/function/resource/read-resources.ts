import { isBlankDocument, splitDocuments } from '../../package/merge/split-documents.ts';
import { NotAResource } from '../yaml/parse-resource-text.ts';
import { Resource } from './resource.ts';
import { isResourcePath } from './resource-path.ts';

/** Larger files are data that no function is meant for, and parsing them takes seconds. */
const MAX_FILE_CHARACTERS = 4 * 1024 * 1024;
const MAX_DOCUMENTS = 10_000;

/** A package as functions see it. */
export interface PackageResources {
  /** The files that it was read from, by path below the package folder. */
  readonly files: ReadonlyMap<string, string>;
  /** By path, and in the order of their files. */
  readonly resources: Resource[];
  /** YAML that is hidden from functions, and why: `values.yaml:1: not a KRM resource: it has no kind`. One line each. */
  readonly notes: string[];
}

/**
 * Reads the YAML files and Kptfiles of a package. What is not a KRM resource is omitted and noted: a document without a kind, and a whole
 * file if one document of it is not valid YAML, as templates are. Throws InvalidInput, with file and line, for a resource that functions
 * cannot work on, such as one with the same key twice: omitting it would bypass all functions.
 */
export function readResources(files: ReadonlyMap<string, string>): PackageResources {
  const resources: Resource[] = [];
  const notes: string[] = [];
  for (const file of [...files.keys()].sort()) {
    const text = files.get(file) ?? '';
    if (!isResourcePath(file)) continue;
    const problem = readFile(file, text, resources, notes);
    if (problem !== undefined) notes.push(problem);
  }
  return { files, resources, notes };
}

function readFile(file: string, text: string, resources: Resource[], notes: string[]): string | undefined {
  if (text.length > MAX_FILE_CHARACTERS)
    return `${file}: left alone: it has ${text.length} characters, at most ${MAX_FILE_CHARACTERS} are read`;
  const parts = splitDocuments(text);
  if (parts.length > MAX_DOCUMENTS)
    return `${file}: left alone: it has ${parts.length} documents, at most ${MAX_DOCUMENTS} are read`;
  const found: Resource[] = [];
  const others: string[] = [];
  let line = 1;
  let index = 0;
  for (const part of parts) {
    if (!isBlankDocument(part)) {
      try {
        found.push(Resource.parse(part, { file, index }, line));
      } catch (error) {
        if (!(error instanceof NotAResource)) throw error;
        if (!error.isYaml) return text.includes('{{') ? `${error.message} (it looks like a template)` : error.message;
        others.push(error.message);
      }
      index++;
    }
    line += countLines(part);
  }
  resources.push(...found);
  notes.push(...others);
  return undefined;
}

function countLines(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count++;
  return count;
}
