"""Reservations, and which of them a job ran in"""

from alembic import op
import sqlalchemy as sa

revision = '0002'
down_revision = '0001'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('reservation_state',
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('record', sa.Text(), nullable=False),
    sa.PrimaryKeyConstraint('name')
    )
    op.add_column('job', sa.Column('reservation', sa.Text(), nullable=False, server_default=''))
    op.add_column('job', sa.Column('reservation_id', sa.BigInteger(), nullable=False, server_default='0'))
