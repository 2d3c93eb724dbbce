import { z } from 'zod'
import { defineOperation } from './operation.ts'

export const getHealth = defineOperation({
  id: 'service.health',
  summary: 'Check the health of the API',
  method: 'GET',
  path: '/health',
  auth: 'none',
  replies: { 200: { description: 'The API is healthy', body: 'text/plain' } },
  errors: [503],
})

export const getOpenApi = defineOperation({
  id: 'service.openapi',
  summary: 'Get the OpenAPI document',
  method: 'GET',
  path: '/openapi.json',
  auth: 'none',
  replies: { 200: { description: 'OpenAPI 3.1', body: z.looseObject({ openapi: z.string() }) } },
  errors: [],
})

export const getDocs = defineOperation({
  id: 'service.docs',
  summary: 'Show the API reference as a web page',
  method: 'GET',
  path: '/docs',
  auth: 'none',
  replies: { 200: { description: 'The page', body: 'text/html' } },
  errors: [],
})
