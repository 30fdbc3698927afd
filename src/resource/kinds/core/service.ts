import { z } from 'zod';
import { defineKind } from '../../schema/define-kind.ts';
import { AGE_COLUMN, NAME_COLUMN } from '../common/columns.ts';

const portSchema = z.object({
  name: z.string().optional().describe('Name of the port.'),
  protocol: z.enum(['TCP', 'UDP', 'SCTP']).default('TCP').describe('Protocol of the port.'),
  appProtocol: z.string().nullish().describe('Protocol of the application.'),
  port: z.int32().min(1).max(65_535).describe('Port that the Service exposes.'),
  targetPort: z
    .union([z.int32(), z.string()])
    .optional()
    .meta({ 'x-kubernetes-int-or-string': true })
    .describe('Number or name of the port on the pods.'),
  nodePort: z.int32().optional().describe('Port on each node.'),
});

/** A Service has no effect here: clients only read it back. */
export const serviceKind = defineKind({
  group: '',
  version: 'v1',
  kind: 'Service',
  plural: 'services',
  shortNames: ['svc'],
  description: 'An address of a workload; kept as it is written, and connected to nothing.',
  spec: z
    .object({
      type: z
        .enum(['ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'])
        .default('ClusterIP')
        .describe('Type of the Service, which determines how it is exposed.'),
      clusterIP: z.string().optional().describe('IP address of the Service in the cluster.'),
      externalName: z.string().optional().describe('DNS name that the Service refers to.'),
      selector: z
        .record(z.string(), z.string())
        .optional()
        .describe('Labels of the pods that the Service routes traffic to.'),
      ports: z.array(portSchema).optional().describe('Ports that the Service exposes.'),
    })
    .prefault({})
    .describe('Desired state of the Service.'),
  printerColumns: [
    NAME_COLUMN,
    { name: 'Type', type: 'string', value: ({ spec }) => spec.type },
    { name: 'Cluster-IP', type: 'string', value: ({ spec }) => spec.clusterIP ?? '<none>' },
    {
      name: 'Port(s)',
      type: 'string',
      value: ({ spec }) => spec.ports?.map(({ port, protocol }) => `${port}/${protocol}`).join(',') || '<none>',
    },
    AGE_COLUMN,
  ],
});
