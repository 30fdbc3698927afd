import { stringify } from 'yaml';
import { DNS_SUBDOMAIN, type NameRule } from '../object/name-rules.ts';
import type { Kind } from './kind.ts';
import type { KindSchema, PrinterColumn } from './kind-schema.ts';
import { structuralSchemaOf } from './schema-of-kind.ts';
import type { StructuralSchema, ValidationRule } from './structural/structural-schema.ts';

/** The CustomResourceDefinition that makes a kube-apiserver serve a kind of ours, as an object. */
export function crdManifest(kind: Kind): Readonly<Record<string, unknown>> {
  const { group, version, plural, singular, shortNames, categories, namespaced } = kind;
  const columns = kind.printerColumns.flatMap(columnOf);
  const selectable = kind.selectableFields.filter(({ path }) => !path.includes('['));
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      names: {
        plural,
        singular,
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        ...(shortNames.length === 0 ? {} : { shortNames }),
        ...(categories.length === 0 ? {} : { categories }),
      },
      scope: namespaced ? 'Namespaced' : 'Cluster',
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: publishedSchema(kind) },
          ...(kind.strategy.hasStatus ? { subresources: { status: {} } } : {}),
          ...(columns.length === 0 ? {} : { additionalPrinterColumns: columns }),
          ...(selectable.length === 0
            ? {}
            : { selectableFields: selectable.map(({ path }) => ({ jsonPath: `.${path}` })) }),
        },
      ],
    },
  };
}

/** The manifest as YAML, for a file. */
export function crdManifestText(kind: Kind): string {
  const note = '# Written by "npm run crds" from src/resource/kinds; do not edit.\n';
  return note + stringify(crdManifest(kind), { version: '1.1', lineWidth: 0, aliasDuplicateObjects: false });
}

/** A kube-apiserver defines the metadata itself; a validation rule constrains names. */
function publishedSchema(kind: KindSchema): StructuralSchema {
  const { properties, ...schema } = structuralSchemaOf(kind);
  const rules = [...(schema['x-kubernetes-validations'] ?? []), ...nameRules(kind.nameRule)];
  return {
    ...schema,
    properties: { ...properties, metadata: { type: 'object' } },
    ...(rules.length === 0 ? {} : { 'x-kubernetes-validations': rules }),
  };
}

function nameRules(nameRule: NameRule | undefined): ValidationRule[] {
  // A kube-apiserver requires DNS sub-domains anyway.
  if (nameRule === undefined || nameRule === DNS_SUBDOMAIN) return [];
  const { pattern, maxLength, rule } = nameRule;
  const name = 'self.metadata.name';
  return [
    { rule: `${name}.size() <= ${maxLength} && ${name}.matches(r'${pattern.source}')`, message: `the name ${rule}` },
  ];
}

function columnOf({ name, type, description, priority, jsonPath }: PrinterColumn<never>): Record<string, unknown>[] {
  // The name is always the first column.
  if (jsonPath === undefined || jsonPath === '.metadata.name') return [];
  return [{ name, type, jsonPath, ...(description && { description }), ...(priority && { priority }) }];
}
