import { editKptfile } from './edit-kptfile.ts';

export interface NewKptfile {
  readonly name: string;
  /** Default: `sample description`, as kpt and Porch write it. */
  readonly description?: string | undefined;
  readonly keywords?: readonly string[] | undefined;
  readonly site?: string | undefined;
}

/** The text of a fresh Kptfile, as `kpt pkg init` and Porch write it. Throws KptfileEditError for an empty name. */
export function newKptfile({ name, description = 'sample description', keywords, site }: NewKptfile): string {
  const base = [
    'apiVersion: kpt.dev/v1',
    'kind: Kptfile',
    'metadata:',
    '  name: package',
    '  annotations:',
    '    config.kubernetes.io/local-config: "true"',
    '',
  ].join('\n');
  return editKptfile(base, [
    { op: 'setName', name },
    { op: 'setInfo', field: 'site', value: site },
    { op: 'setInfo', field: 'description', value: description },
    { op: 'setInfo', field: 'keywords', value: keywords },
  ]);
}
