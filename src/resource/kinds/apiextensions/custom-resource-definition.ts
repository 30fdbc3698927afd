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
  plural: nameString(DNS_LABEL).describe('Name of the kind in paths, lower case, such as gateways.'),
  singular: z.string().optional().describe('Name of one object, lower case; by default the kind in lower case.'),
  kind: kindName.describe('Name of the kind, such as Gateway.'),
  listKind: kindName.optional().describe('Name of the kind of lists; by default the kind followed by List.'),
  shortNames: z.array(nameString(DNS_LABEL)).optional().describe('Short names for people who type.'),
  categories: z.array(nameString(DNS_LABEL)).optional().describe('Groups of kinds that can be requested at once.'),
});

const printerColumn = z.object({
  name: z.string().min(1).describe('Title of the column.'),
  type: z.enum(['integer', 'number', 'string', 'boolean', 'date']).describe('What the column shows.'),
  format: z.string().optional().describe('Format of the value.'),
  description: z.string().optional().describe('What the column means.'),
  priority: z.int32().optional().describe('0 is always shown, higher numbers in wide tables only.'),
  jsonPath: z.string().min(1).describe('Where the value stands, such as .spec.size.'),
});

const version = z.object({
  name: nameString(DNS_LABEL).describe('Name of the version, such as v1.'),
  served: z.boolean().describe('Whether the version can be used.'),
  storage: z.boolean().describe('Whether objects are stored in this version; true for one version.'),
  deprecated: z.boolean().optional().describe('Whether users of the version are warned.'),
  deprecationWarning: z.string().optional().describe('The text of the warning.'),
  schema: z
    .object({
      openAPIV3Schema: z.unknown().optional().describe('A structural schema of OpenAPI 3.0.'),
    })
    .optional()
    .describe('The schema of an object.'),
  subresources: z
    .object({
      status: z.looseObject({}).optional().describe('Present if the status is written apart from the rest.'),
    })
    .optional()
    .describe('Parts of an object that are written apart.'),
  additionalPrinterColumns: z
    .array(printerColumn)
    .max(50)
    .optional()
    .describe('Columns of tables besides the name; by default the age.'),
  selectableFields: z
    .array(z.object({ jsonPath: z.string().min(1).describe('Path of the field, such as .spec.color.') }))
    .max(8)
    .optional()
    .describe('Fields that field selectors may name.'),
});

const spec = z.object({
  group: nameString(DNS_SUBDOMAIN).describe('The API group.'),
  names: names.describe('What the kind is called.'),
  scope: z.enum(['Namespaced', 'Cluster']).describe('Whether objects belong to a namespace.'),
  versions: z
    .array(version)
    .min(1)
    .max(32)
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .describe('The versions of the kind.'),
  conversion: z
    .object({ strategy: z.enum(['None']).describe('None: versions differ in nothing but their schema.') })
    .optional()
    .describe('How objects are brought from one version to another.'),
  preserveUnknownFields: z.literal(false).optional().describe('Not used any more.'),
});

// Tools that write definitions leave empty texts here.
const acceptedNames = z
  .object({
    plural: z.string().optional().describe('Name of the kind in paths.'),
    singular: z.string().optional().describe('Name of one object.'),
    kind: z.string().optional().describe('Name of the kind.'),
    listKind: z.string().optional().describe('Name of the kind of lists.'),
    shortNames: z.array(z.string()).optional().describe('Short names for people who type.'),
    categories: z.array(z.string()).optional().describe('Groups of kinds that can be requested at once.'),
  })
  .describe('The names that are served.');

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
  spec: spec.describe('The kind.'),
  status: z
    .object({
      conditions: conditionsSchema.optional(),
      acceptedNames: acceptedNames.optional(),
      storedVersions: z.array(z.string()).optional().describe('Versions that objects may be stored in.'),
    })
    .describe('Whether the kind is served.'),
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
