import type { ResultItem } from '../../../kptfile-schema/index.ts';

/** One line for people: file, resource, field and what was found. */
export function describeFinding({ message = '', resourceRef, field, file }: ResultItem): string {
  const { kind, namespace, name } = resourceRef ?? {};
  const object = namespace === undefined ? name : `${namespace}/${name}`;
  const resource = kind === undefined ? undefined : `${kind} ${object ?? ''}`.trim();
  return [file?.path, resource, field?.path, message].filter((part) => part !== undefined && part !== '').join(': ');
}
