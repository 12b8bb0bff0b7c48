output "location" {
  description = "For MARCH_ARTIFACTS."
  value       = "s3://${aws_s3_bucket.artifacts.id}/${var.prefix}"
}

output "policy_arns" {
  description = "By who needs it: trainer, promoter, gc, auditor, and key where there is one. Attach them to roles."
  value = merge(
    { for name, policy in aws_iam_policy.role : name => policy.arn },
    { for policy in aws_iam_policy.key : "key" => policy.arn },
  )
}
