import { readYaml, YamlProblem } from '../../src/delivery/yaml/read-yaml.ts';
import { isMapping, isSequence, textAt, type Value } from '../../src/delivery/yaml/yaml-value.ts';
import type { ComparedFiles } from '../../src/package/model/diff/compared-files.ts';

/** Bytes of a file that is searched for Secrets; larger ones are not shown. */
const MAX_READ_BYTES = 65_536;

/** Paths of files that are not certainly free of Secrets on one of the sides. */
export async function hiddenPaths(...sides: readonly ComparedFiles[]): Promise<Set<string>> {
  const hidden = new Set<string>();
  for (const { files, read } of sides)
    for (const [path, { id, bytes }] of files) {
      const [data] = bytes > MAX_READ_BYTES ? [] : await read([id]);
      if (data === undefined || !isFreeOfSecrets(data)) hidden.add(path);
    }
  return hidden;
}

/** False also for what cannot be read as manifests. */
function isFreeOfSecrets(data: Uint8Array): boolean {
  try {
    return readYaml(new TextDecoder('utf-8', { fatal: true }).decode(data)).every(
      ({ value }) => textAt(value, 'kind') !== undefined && !mentionsSecret(value, new Set()),
    );
  } catch (error) {
    if (error instanceof YamlProblem || error instanceof TypeError) return false;
    throw error;
  }
}

/** True if a Secret, or a generator of Secrets, is anywhere in a value. */
function mentionsSecret(value: Value, seen: Set<Value>): boolean {
  if (seen.has(value)) return false;
  seen.add(value);
  if (isSequence(value)) return value.some((item) => mentionsSecret(item, seen));
  if (!isMapping(value)) return false;
  if (/^secret(list)?$/i.test(textAt(value, 'kind') ?? '')) return true;
  return [...value.entries].some(
    ([key, entry]) => key.toLowerCase() === 'secretgenerator' || mentionsSecret(entry.value, seen),
  );
}
