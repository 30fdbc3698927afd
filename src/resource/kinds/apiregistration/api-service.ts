import { z } from 'zod';
import { findCondition } from '../../object/condition.ts';
import { invalidValue } from '../../object/invalid-object.ts';
import { PATH_SEGMENT } from '../../object/name-rules.ts';
import { defineKind } from '../../schema/define-kind.ts';
import type { ObjectOf } from '../../schema/kind.ts';
import { AGE_COLUMN, NAME_COLUMN } from '../common/columns.ts';
import { conditionsSchema } from '../common/condition-schema.ts';

export const apiServiceKind = defineKind({
  group: 'apiregistration.k8s.io',
  version: 'v1',
  kind: 'APIService',
  plural: 'apiservices',
  namespaced: false,
  description: 'One version of an API group that is served.',
  nameRule: PATH_SEGMENT,
  spec: z
    .object({
      service: z
        .object({
          namespace: z.string().optional().describe('Namespace of the Service.'),
          name: z.string().optional().describe('Name of the Service.'),
          port: z.int32().min(1).max(65_535).default(443).describe('Port of the Service.'),
        })
        .nullish()
        .describe('Service that serves the API; absent if this server serves it.'),
      group: z.string().optional().describe('The API group; empty for the core group.'),
      version: z.string().min(1).describe('API version, such as v1.'),
      insecureSkipTLSVerify: z
        .boolean()
        .optional()
        .describe('Whether to skip the verification of the TLS certificate of the Service.'),
      caBundle: z
        .base64()
        .nullish()
        .describe('CA bundle that the TLS certificate of the Service is verified against; PEM, in base64.'),
      groupPriorityMinimum: z
        .int32()
        .min(1)
        .max(20_000)
        .default(1000)
        .describe('Priority of the group in discovery; groups with a higher priority come first.'),
      versionPriority: z
        .int32()
        .min(1)
        .max(1000)
        .default(100)
        .describe('Priority of the version within its group; versions with a higher priority come first.'),
    })
    .describe('API group and version, and the Service that serves it.'),
  status: z.object({ conditions: conditionsSchema.optional() }).describe('Observed state of the API.'),
  strategy: {
    validate({ metadata, spec: { group = '', version } }) {
      const name = `${version}.${group}`;
      if (metadata.name === name) return [];
      return [invalidValue(['metadata', 'name'], metadata.name, `must be \`spec.version+"."+spec.group\`: "${name}"`)];
    },
  },
  printerColumns: [
    NAME_COLUMN,
    {
      name: 'Service',
      type: 'string',
      value: ({ spec: { service } }) => (service ? `${service.namespace ?? ''}/${service.name ?? ''}` : 'Local'),
    },
    {
      name: 'Available',
      type: 'string',
      value({ status }) {
        const available = findCondition(status?.conditions, 'Available');
        if (available === undefined) return 'Unknown';
        return available.status === 'True' ? 'True' : `${available.status} (${available.reason})`;
      },
    },
    AGE_COLUMN,
  ],
});

export type ApiService = ObjectOf<typeof apiServiceKind>;
