"""What others published, beside what this machine measured: pictures of studies, and claims as rows."""
