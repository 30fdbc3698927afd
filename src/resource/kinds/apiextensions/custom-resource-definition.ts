import { z } from 'zod';
import { type FieldCause, invalidValue } from '../../object/invalid-object.ts';
import { DNS_LABEL, DNS_SUBDOMAIN } from '../../object/name-rules.ts';
import type { DeepReadonly } from '../../object/object.ts';
import { defineKind } from '../../schema/define-kind.ts';
import type { ObjectOf } from '../../schema/kind.ts';
import { nameString } from '../../schema/object-schema.ts';
import { versionProblems } from '../../schema/structural/definition-problems.ts';
import { CREATED_AT_COLUMN, NAME_COLUMN } from '../common/columns.ts';
import { conditionsSchema } from '../common/condition-schema.ts';

const kindName = z
  .string()
  .max(63)
  .regex(/^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$/, 'must be letters and digits, such as Gateway');

const names = z.object({
  plural: nameString(DNS_LABEL).describe(
    'Plural name of the resource, used in API paths; lower case, such as gateways.',
  ),
  singular: z
    .string()
    .optional()
    .describe('Singular name of the resource; lower case. Defaults to the kind in lower case.'),
  kind: kindName.describe('Kind of the object, in CamelCase, such as Gateway.'),
  listKind: kindName.optional().describe('Kind of a list of objects. Defaults to the kind followed by List.'),
  shortNames: z
    .array(nameString(DNS_LABEL))
    .optional()
    .describe('Short names of the resource, such as gw for gateways.'),
  categories: z
    .array(nameString(DNS_LABEL))
    .optional()
    .describe('Categories that contain the resource, such as all; clients can list a category at once.'),
});

const printerColumn = z.object({
  name: z.string().min(1).describe('Title of the column.'),
  type: z.enum(['integer', 'number', 'string', 'boolean', 'date']).describe('Type of the value.'),
  format: z.string().optional().describe('OpenAPI format of the value.'),
  description: z.string().optional().describe('Description of the column.'),
  priority: z
    .int32()
    .optional()
    .describe('Priority of the column: 0 is always shown, higher numbers only in wide output.'),
  jsonPath: z.string().min(1).describe('JSONPath of the value, such as .spec.size.'),
});

const version = z.object({
  name: nameString(DNS_LABEL).describe('Name of the version, such as v1.'),
  served: z.boolean().describe('Whether the API serves the version.'),
  storage: z
    .boolean()
    .describe('Whether objects are stored in this version. Exactly one version is the storage version.'),
  deprecated: z
    .boolean()
    .optional()
    .describe('Whether the version is deprecated. The server then returns a warning with each response.'),
  deprecationWarning: z.string().optional().describe('Text of the deprecation warning.'),
  schema: z
    .object({
      openAPIV3Schema: z.unknown().optional().describe('Structural OpenAPI 3.0 schema.'),
    })
    .optional()
    .describe('Schema that objects of this version are validated against.'),
  subresources: z
    .object({
      status: z.looseObject({}).optional().describe('If set, the status is written through its own subresource.'),
    })
    .optional()
    .describe('Subresources of the object.'),
  additionalPrinterColumns: z
    .array(printerColumn)
    .max(50)
    .optional()
    .describe('Additional columns of tables. Defaults to the age of the object.'),
  selectableFields: z
    .array(z.object({ jsonPath: z.string().min(1).describe('JSONPath of the field, such as .spec.color.') }))
    .max(8)
    .optional()
    .describe('Fields that field selectors can use.'),
});

const spec = z.object({
  group: nameString(DNS_SUBDOMAIN).describe('API group of the resource.'),
  names: names.describe('Names of the resource and of its kind.'),
  scope: z.enum(['Namespaced', 'Cluster']).describe('Whether objects are namespaced or cluster-scoped.'),
  versions: z
    .array(version)
    .min(1)
    .max(32)
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .describe('Versions of the resource.'),
  conversion: z
    .object({ strategy: z.enum(['None']).describe('Conversion strategy. None: only apiVersion changes.') })
    .optional()
    .describe('Conversion of objects between versions.'),
  preserveUnknownFields: z.literal(false).optional().describe('Deprecated and not used.'),
});

// Tools that write definitions leave empty texts here.
const acceptedNames = z
  .object({
    plural: z.string().optional().describe('Plural name of the resource, used in API paths.'),
    singular: z.string().optional().describe('Singular name of the resource.'),
    kind: z.string().optional().describe('Kind of the object.'),
    listKind: z.string().optional().describe('Kind of a list of objects.'),
    shortNames: z.array(z.string()).optional().describe('Short names of the resource, such as gw for gateways.'),
    categories: z
      .array(z.string())
      .optional()
      .describe('Categories that contain the resource, such as all; clients can list a category at once.'),
  })
  .describe('Names that the server serves the resource under.');

export const customResourceDefinitionKind = defineKind({
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  shortNames: ['crd', 'crds'],
  categories: ['api-extensions'],
  namespaced: false,
  // The schemas of some operators are large; only cluster administrators write them.
  maxValues: 30_000,
  compilesRules: true,
  description: 'A kind of objects that users define.',
  spec: spec.describe('Desired definition of the resource.'),
  status: z
    .object({
      conditions: conditionsSchema.optional(),
      acceptedNames: acceptedNames.optional(),
      storedVersions: z.array(z.string()).optional().describe('All versions that stored objects may have.'),
    })
    .describe('Observed state of the definition.'),
  strategy: {
    canonicalize(definition) {
      const { names: given } = definition.spec;
      const kindNames = {
        ...given,
        singular: given.singular ?? given.kind.toLowerCase(),
        listKind: given.listKind ?? `${given.kind}List`,
      };
      const conversion = definition.spec.conversion ?? { strategy: 'None' };
      return { ...definition, spec: { ...definition.spec, names: kindNames, conversion } };
    },
    validate: definitionCauses,
  },
  immutableFields: ['spec.group', 'spec.scope', 'spec.names.plural', 'spec.names.kind'],
  printerColumns: [NAME_COLUMN, CREATED_AT_COLUMN],
});

export type CustomResourceDefinition = ObjectOf<typeof customResourceDefinitionKind>;

interface Definition {
  readonly metadata: { readonly name: string };
  readonly spec: DeepReadonly<z.output<typeof spec>>;
}

function definitionCauses({ metadata, spec: { group, names: kindNames, versions } }: Definition): FieldCause[] {
  const causes: FieldCause[] = [];
  const name = `${kindNames.plural}.${group}`;
  if (metadata.name !== name)
    causes.push(
      invalidValue(['metadata', 'name'], metadata.name, `must be spec.names.plural+"."+spec.group: "${name}"`),
    );
  const stored = versions.filter((entry) => entry.storage).length;
  if (stored !== 1)
    causes.push(invalidValue(['spec', 'versions'], stored, 'exactly one version must have storage: true'));
  const seen = new Set<string>();
  for (const [index, entry] of versions.entries()) {
    const path = ['spec', 'versions', index];
    if (seen.has(entry.name))
      causes.push(invalidValue([...path, 'name'], entry.name, 'must be the name of one version only'));
    seen.add(entry.name);
    causes.push(...versionProblems(entry, path));
  }
  return causes;
}
