import type { ResultItem } from '../../../kptfile-schema/index.ts';

/** Formats a result as one human-readable line: file, resource, field and message. */
export function describeFinding({ message = '', resourceRef, field, file }: ResultItem): string {
  const { kind, namespace, name } = resourceRef ?? {};
  const object = namespace === undefined ? name : `${namespace}/${name}`;
  const resource = kind === undefined ? undefined : `${kind} ${object ?? ''}`.trim();
  return [file?.path, resource, field?.path, message].filter((part) => part !== undefined && part !== '').join(': ');
}
