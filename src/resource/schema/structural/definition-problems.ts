import { isSluiceError } from '../../../foundation/sluice-error.ts';
import { type FieldCause, fieldPath, invalidValue, requiredValue } from '../../object/invalid-object.ts';
import { parseJsonPath } from './json-path.ts';
import { structuralProblems } from './structural-problems.ts';
import type { StructuralSchema } from './structural-schema.ts';
import { validateValue } from './validate-value.ts';

type Path = readonly (string | number)[];

/** One version of a CustomResourceDefinition, as far as it is validated here. */
export interface DefinedVersion {
  readonly schema?: { readonly openAPIV3Schema?: unknown } | undefined;
  readonly additionalPrinterColumns?: readonly { readonly jsonPath: string }[] | undefined;
  readonly selectableFields?: readonly { readonly jsonPath: string }[] | undefined;
}

const SELECTABLE_TYPES = ['string', 'integer', 'boolean'];

/** Returns the errors in the schema and the paths of one version; `at` is the path of the version. */
export function versionProblems(version: DefinedVersion, at: Path): FieldCause[] {
  const place = [...at, 'schema', 'openAPIV3Schema'];
  const schema = version.schema?.openAPIV3Schema;
  if (schema === undefined) return [requiredValue(place)];
  const flaws = structuralProblems(schema, place);
  if (flaws.length > 0) return flaws;
  const structural = schema as StructuralSchema;
  return [
    ...metadataProblems(structural, place),
    ...defaultProblems(structural, place),
    ...columnProblems(version, at),
    ...selectableProblems(version, structural, at),
  ];
}

/** The metadata of an object are the server's; a schema may only narrow down the name. */
function metadataProblems({ properties = {} }: StructuralSchema, at: Path): FieldCause[] {
  const metadata = Object.hasOwn(properties, 'metadata') ? properties.metadata : undefined;
  if (metadata === undefined) return [];
  const place = [...at, 'properties', 'metadata'];
  const { type, description: _text, properties: fields = {}, ...rest } = metadata;
  const causes = Object.keys(rest).map((key) => forbid([...place, key]));
  if (type !== 'object') causes.push(invalidValue([...place, 'type'], type, 'must be object'));
  for (const name of Object.keys(fields))
    if (name !== 'name' && name !== 'generateName') causes.push(forbid([...place, 'properties', name]));
  return causes;
}

function forbid(path: Path): FieldCause {
  return { field: fieldPath(path), message: 'Forbidden: only name and generateName can be narrowed down', path };
}

/** A default must be a value that its own schema takes as it is. */
function defaultProblems(schema: StructuralSchema, at: Path): FieldCause[] {
  const causes: FieldCause[] = [];
  if (schema.default !== undefined) {
    const result = validateValue(schema, schema.default, [...at, 'default']);
    causes.push(...result.causes);
    for (const path of result.unknownFields)
      causes.push(invalidValue(path, 'a default', 'names a field that is unknown'));
  }
  for (const [name, inner] of Object.entries(schema.properties ?? {}))
    causes.push(...defaultProblems(inner, [...at, 'properties', name]));
  if (schema.items !== undefined) causes.push(...defaultProblems(schema.items, [...at, 'items']));
  if (typeof schema.additionalProperties === 'object')
    causes.push(...defaultProblems(schema.additionalProperties, [...at, 'additionalProperties']));
  return causes;
}

function columnProblems({ additionalPrinterColumns = [] }: DefinedVersion, at: Path): FieldCause[] {
  return additionalPrinterColumns.flatMap(({ jsonPath }, index) => {
    const path = [...at, 'additionalPrinterColumns', index, 'jsonPath'];
    const problem = pathProblem(jsonPath);
    return problem === undefined ? [] : [invalidValue(path, jsonPath, problem)];
  });
}

function selectableProblems(
  { selectableFields = [] }: DefinedVersion,
  schema: StructuralSchema,
  at: Path,
): FieldCause[] {
  return selectableFields.flatMap(({ jsonPath }, index) => {
    const path = [...at, 'selectableFields', index, 'jsonPath'];
    const problem = pathProblem(jsonPath);
    if (problem !== undefined) return [invalidValue(path, jsonPath, problem)];
    const type = typeAt(schema, parseJsonPath(jsonPath).plain ?? []);
    if (type !== undefined && SELECTABLE_TYPES.includes(type)) return [];
    return [
      invalidValue(path, jsonPath, 'must lead to a field of type string, integer or boolean, not in a list or map'),
    ];
  });
}

function typeAt(schema: StructuralSchema, steps: Path): string | undefined {
  let inner: StructuralSchema | undefined = schema;
  for (const step of steps) {
    const properties: Readonly<Record<string, StructuralSchema>> = inner?.properties ?? {};
    inner = Object.hasOwn(properties, step) ? properties[step] : undefined;
  }
  return inner?.type;
}

function pathProblem(jsonPath: string): string | undefined {
  try {
    parseJsonPath(jsonPath);
    return undefined;
  } catch (error) {
    if (!isSluiceError(error, 'InvalidInput')) throw error;
    return 'must be a path such as .spec.size, .spec.parts[0].name or .status.conditions[?(@.type=="Ready")].status';
  }
}
