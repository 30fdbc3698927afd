import { type Condition, findCondition } from '../../object/condition.ts';
import type { KubernetesObject } from '../../object/object.ts';
import type { PrinterColumn } from '../../schema/kind-schema.ts';

/** The first column of every table. */
export const NAME_COLUMN: PrinterColumn<KubernetesObject> = {
  name: 'Name',
  type: 'string',
  description: 'Name of the object.',
  jsonPath: '.metadata.name',
  value: (object) => object.metadata.name,
};

export const AGE_COLUMN: PrinterColumn<KubernetesObject> = {
  name: 'Age',
  type: 'date',
  description: 'Time since the object was created.',
  jsonPath: '.metadata.creationTimestamp',
  value: (object) => object.metadata.creationTimestamp,
};

/** The time itself, where kubectl users expect it instead of the age. */
export const CREATED_AT_COLUMN: PrinterColumn<KubernetesObject> = {
  name: 'Created At',
  type: 'string',
  description: 'When the object was created.',
  value: (object) => object.metadata.creationTimestamp,
};

export const READY_COLUMN: PrinterColumn<KubernetesObject> = {
  name: 'Ready',
  type: 'string',
  description: 'Status of the condition Ready.',
  jsonPath: '.status.conditions[?(@.type=="Ready")].status',
  value: ({ status }) => readyOf(status)?.status,
};

/** Why an object is Ready or not. Only wide tables have them. */
export const READY_REASON_COLUMNS: readonly PrinterColumn<KubernetesObject>[] = (['Reason', 'Message'] as const).map(
  (name) => {
    const field = name === 'Reason' ? 'reason' : 'message';
    return {
      ...{ name, type: 'string', priority: 1, description: `${name} of the condition Ready.` },
      jsonPath: `.status.conditions[?(@.type=="Ready")].${field}`,
      value: ({ status }) => readyOf(status)?.[field],
    };
  },
);

function readyOf(status: unknown): Condition | undefined {
  const { conditions } = (status ?? {}) as { readonly conditions?: readonly Condition[] };
  return findCondition(conditions, 'Ready');
}
