import { SluiceError } from '../../../foundation/sluice-error.ts';
import { readResources } from '../../../function/resource/read-resources.ts';
import { Resource } from '../../../function/resource/resource.ts';
import { readPlaceAnnotations } from '../../../function/resource-list/place-annotations.ts';
import { writeResourceList } from '../../../function/resource-list/resource-list-text.ts';
import { sinkPackage } from '../../../function/resource-list/source-package.ts';

const MAX_BYTES = 64 * 1024 * 1024;

/**
 * Reads the resources on stdin, a ResourceList or YAML documents, as files; annotations of the resources may name the
 * files.
 */
export async function stdinFiles(): Promise<ReadonlyMap<string, string>> {
  return filesOf(await readStdin());
}

function filesOf(text: string): ReadonlyMap<string, string> {
  if (/^kind:[ \t]*["']?ResourceList["']?[ \t]*\r?$/m.test(text)) return sinkPackage(text);
  const { resources, notes } = readResources(new Map([['stdin.yaml', text]]));
  const problem = notes[0];
  if (problem !== undefined) throw new SluiceError('InvalidInput', problem.replace('stdin.yaml', 'stdin'));
  const items = resources.map(({ root }) => {
    const { internal, legacy } = readPlaceAnnotations(root);
    const file = internal.path ?? legacy.path ?? '';
    return Resource.of(root, { file, index: Number(internal.index ?? legacy.index) || 0 });
  });
  return sinkPackage(writeResourceList({ items, config: undefined }));
}

async function readStdin(): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of process.stdin as AsyncIterable<Buffer>) {
    bytes += part.byteLength;
    if (bytes > MAX_BYTES)
      throw new SluiceError(
        'LimitExceeded',
        `stdin has more than ${MAX_BYTES} bytes; it does not look like one package`,
      );
    parts.push(part);
  }
  const text = Buffer.concat(parts).toString('utf8');
  if (text.trim() === '')
    throw new SluiceError(
      'InvalidInput',
      'stdin is empty; pipe a ResourceList or YAML documents in, as of "sluice fn source"',
    );
  return text;
}
